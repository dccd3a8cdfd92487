"""The figures: one file each, drawn from stored results. `fairopt figures`, docs/experiments.md.

Every `fig_NAME.py` has `figure(results, width=...) -> Figure`. It reads the store and solves nothing.
"""
