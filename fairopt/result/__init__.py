"""Allocations and traces, with their files, numbers, derivatives and pictures."""
