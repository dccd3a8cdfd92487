"""Allocations and traces, with their files, measures, derivatives and plots."""
