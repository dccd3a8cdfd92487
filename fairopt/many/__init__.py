"""Thousands of small clusters with one mechanism: stacked, solved together, each judged."""
