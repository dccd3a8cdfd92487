"""Benchmarks: what is measured, on which clusters; never part of the tests."""
