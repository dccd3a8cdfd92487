"""Benchmarks and their clusters, independent of the tests."""
