"""Exact answers at finite alpha, independent of fairopt's solvers and certificates: `reference`, `best_welfare`."""

from .answers import Reference, best_welfare, dominant_shares, reference

__all__ = ["Reference", "best_welfare", "dominant_shares", "reference"]
