"""Scheduling policies, one per file; subclasses of `Policy` are registered automatically."""

from __future__ import annotations

from ._base import REGISTRY, Policy, rule

__all__ = ["REGISTRY", "Policy", "one", "rule"]


def one(given: str | Policy) -> Policy:
    """Return a policy as it is, or parse a text: `best-fit-drfh`, `slots(n=14)`, `tetris(fairness=.25)`."""
    made: Policy = REGISTRY.one(given, Policy)
    return made
