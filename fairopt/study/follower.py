"""Allocations of one cluster along alpha, each warm-started from the previous allocation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from .. import mechanisms
from ..base.errors import DataError
from ..core.engines.small import Together
from ..mechanisms import Mechanism
from ..mechanisms._earlier import OtherAlphas
from ..model.cluster import Cluster
from ..result.allocation import Allocation

#: A mechanism with a parameter `alpha`: its class, or its name.
Followed = type[Mechanism] | str


class Follower:
    """Allocations of one cluster by alpha, cached in `found`.

    Each solve starts from the previous allocation, unless its certificate misses the tolerance.

    Small problems for the `alphas` that are known in advance are solved jointly. Without `refine`, an allocation with a
    backward error of less than 1e-10 is not refined further, since tables show fewer digits.
    """

    def __init__(
        self,
        cluster: Cluster,
        mechanism: Followed,
        tol: float | None,
        throw: bool = True,
        alphas: Sequence[float] = (),
        refine: bool = True,
    ) -> None:
        self.make, self.title = _family(mechanism)
        self.cluster, self._tol, self._throw = cluster, tol, throw
        self.found: dict[float, Allocation] = {}
        self._last: Allocation | None = None
        self._together, self._refine = Together(alphas), refine

    def __call__(self, alpha: float) -> Allocation:
        if alpha not in self.found:
            last = None if self._last is None or self._last.flagged else self._last
            start = None if last is None else OtherAlphas(last, self._together, self._refine)
            self._last = self.make(alpha).solve(self.cluster, self._tol, throw=self._throw, start=start)
            self.found[alpha] = self._last
        return self.found[alpha]


def _family(mechanism: object) -> tuple[Callable[[float], Mechanism], str]:
    """Function from alpha to mechanism, given a class or name, and the title of the family.

    A mechanism without a free parameter alpha, or an instance, raises `DataError`.
    """
    given: dict[str, Any] = {}
    if isinstance(mechanism, str):
        mechanism, given = mechanisms.described(mechanism)
        if "alpha" in given:
            raise DataError("the mechanism is followed as alpha changes: leave alpha out of its brackets")
    if isinstance(mechanism, Mechanism):
        raise DataError(f"mechanism is one {mechanism}; give the class, mechanism={type(mechanism).__name__}")
    if not (isinstance(mechanism, type) and issubclass(mechanism, Mechanism)):
        raise DataError(f"mechanism is {mechanism!r}; it must be a class of mechanisms, such as mechanism=AlphaFair")
    kind: type[Mechanism] = mechanism
    if "alpha" not in (field.name for field in dataclasses.fields(kind)):
        raise DataError(f"{kind.__name__} has no parameter alpha to follow; AlphaPFVDS and AlphaFair have one")
    about = ", ".join(f"{name}={value}" for name, value in given.items())
    title = f"{kind.title}({about})" if about else kind.title
    return lambda alpha: mechanisms.get(kind.name, **given, alpha=alpha) if given else kind(alpha=alpha), title
