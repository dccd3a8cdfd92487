"""The distributed game as it would run: orders, networks, starts."""
