"""What a mechanism says of many clusters, stacked by kind and shape: the mechanism is asked, once for each cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..mechanisms import Mechanism
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ..model.problem import Problem
from .problems import Problems

Array = NDArray[np.float64]

#: What kernels solve: `leximin` over a pool or servers, `each`: inside every server; finite alpha; the game's limit.
Kind = Literal["leximin", "each", "global", "game", "psdsf"]


#: Pairs (user, server) up to which kernels are faster than `Mechanism.solve` (docs/many.md): theirs is dense algebra.
LARGEST: dict[Kind, int] = {"leximin": 1000, "each": 10_000, "global": 200, "game": 120, "psdsf": 90}


@dataclass(frozen=True)
class Statement:
    """One cluster as the mechanism sees it, and what fair means there."""

    number: int
    cluster: Cluster
    criterion: Criterion

    @property
    def problem(self) -> Problem:
        """As the judges of one problem are given it."""
        return Problem(self.cluster, self.criterion)


@dataclass(frozen=True)
class Batch:
    """Statements of one kind and shape as arrays with the problems first."""

    kind: Kind
    statements: list[Statement]

    def stacked(self) -> tuple[Array, Array, NDArray[np.bool_], Array, Array, Array, Array]:
        """Capacity, demand, eligibility, share per task, weight, most tasks, alpha."""
        clusters = [one.cluster for one in self.statements]
        rules = [one.criterion for one in self.statements]
        limits = [rule.limits(cluster) for rule, cluster in zip(rules, clusters, strict=True)]
        return (
            np.array([cluster.capacity for cluster in clusters]),
            np.array([cluster.demand for cluster in clusters]),
            np.array([cluster.eligible for cluster in clusters]),
            np.array([rule.share for rule in rules]),
            np.array([rule.weight for rule in rules]),
            np.array(limits),
            np.array([rule.alpha for rule in rules]),
        )


@dataclass
class Stated:
    """Some problems, sorted: by kind and shape, those that no kernel covers, and those that are none."""

    batches: dict[tuple[Kind, tuple[int, ...]], Batch] = field(default_factory=dict)
    single: list[int] = field(default_factory=list)
    refused: list[tuple[int, str]] = field(default_factory=list)
    clusters: dict[int, Cluster] = field(default_factory=dict)


def stated(mechanism: Mechanism, problems: Problems, numbers: Iterable[int]) -> Stated:
    """Ask the mechanism what it means by fair on these problems."""
    found, groups = Stated(), defaultdict(list)
    by_criterion = mechanism.judged_by_criterion
    for p in numbers:
        try:
            cluster = found.clusters[p] = problems[p]
            mechanism.check(cluster)
            seen, _ = mechanism.prepare(cluster)
            rule = mechanism.criterion(seen)
        except DataError as error:
            found.refused.append((p, str(error)))
            continue
        kind = kind_of(rule) if by_criterion else None
        if kind is None or len(seen.users) * len(seen.servers) > LARGEST[kind]:
            found.single.append(p)
        else:
            groups[kind, seen.shape].append(Statement(p, seen, rule))
    for key, statements in groups.items():
        found.batches[key] = Batch(key[0], statements)
        mechanism.check_statement(statements[0].problem)  # remembered: once for a mechanism
    return found


def kind_of(rule: Criterion) -> Kind | None:
    """Which kernel answers to a criterion; `None`: none does (floors, alpha = 0, other welfare)."""
    if type(rule) is not Criterion or rule.floor.any() or rule.alpha == 0:
        return None
    if np.isinf(rule.alpha):
        kinds: dict[str, Kind] = {"pool": "leximin", "servers": "leximin", "per_server": "each", "game": "psdsf"}
        return kinds[rule.scope]
    if rule.scope == "per_server":
        return None
    return "game" if rule.scope == "game" else "global"
