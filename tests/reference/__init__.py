"""Exact answers at finite alpha, independent of fairopt's solvers and certificates: `reference`, `best_welfare`."""

from .answers import Kind, Reference, best_welfare, dominant_shares, reference

__all__ = ["Kind", "Reference", "best_welfare", "dominant_shares", "reference"]
