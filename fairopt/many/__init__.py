"""Thousands of small clusters with one mechanism: stacked, solved by compiled kernels, each judged."""
