"""Engines: selection of the solution method by criterion and problem size, and its candidate solutions."""
