"""Exact answers at finite alpha, proved independently of fairopt's solvers and certificates: `reference`."""

from .answers import Kind, Reference, reference

__all__ = ["Kind", "Reference", "reference"]
