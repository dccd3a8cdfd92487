"""Lexicographic max-min: water filling, or level by level by a structured interior point."""
