"""Engines by criterion: which method answers, at which size, and its candidates."""
