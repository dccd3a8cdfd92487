"""Policies of schedulers, one a file. A policy is registered by being defined."""

from __future__ import annotations

from typing import Any

from ...errors import DataError
from ...mechanisms._registry import parameters, parts
from ...model._names import short
from ._base import REGISTRY, Policy, rule

__all__ = ["REGISTRY", "Policy", "one", "rule"]


def one(given: str | Policy) -> Policy:
    """A policy as it is, or from text: `best-fit-drfh`, `slots(n=14)`, `tetris(fairness=.25)`."""
    if isinstance(given, Policy):
        return given
    what: Any = given
    if isinstance(what, type) and issubclass(what, Policy):
        raise DataError(f"{what.__name__} is a class; give an instance of it, {what.__name__}(), or its name")
    if not isinstance(what, str):
        raise DataError(f"{short(what)} is no policy; give a name, or an instance of Policy")
    name, inside = parts(given, "policy")
    made: Policy = REGISTRY.made(name, {} if inside is None else parameters(given, inside))
    return made
