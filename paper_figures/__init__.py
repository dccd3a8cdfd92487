"""Figures, one file each, drawn from stored results: `fairopt figures`, docs/experiments.md.

Every `fig_NAME.py` has `figure(results, width=...) -> Figure`, which reads the store and solves nothing.
"""
