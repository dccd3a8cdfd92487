"""Policies of schedulers, one a file. A policy is registered by being defined."""

from __future__ import annotations

from ._base import REGISTRY, Policy, rule

__all__ = ["REGISTRY", "Policy", "one", "rule"]


def one(given: str | Policy) -> Policy:
    """A policy as it is, or from text: `best-fit-drfh`, `slots(n=14)`, `tetris(fairness=.25)`."""
    made: Policy = REGISTRY.one(given, Policy)
    return made
