"""What a mechanism says of many clusters, stacked by kind and shape: the mechanism is asked, once for each cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..engines.small.kinds import Kind, kind_of, small_enough
from ..errors import DataError
from ..mechanisms import Mechanism
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ..model.problem import Problem
from .problems import Problems


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
    """Statements of one kind and shape."""

    kind: Kind
    statements: list[Statement]


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
            rule = mechanism.criterion(seen) if by_criterion else None
        except DataError as error:
            found.refused.append((p, str(error)))
            continue
        kind = None if rule is None else kind_of(rule)
        if rule is None or kind is None or not small_enough(kind, len(seen.users) * len(seen.servers), rule.alpha):
            found.single.append(p)
        else:
            groups[kind, seen.shape].append(Statement(p, seen, rule))
    for key, statements in groups.items():
        found.batches[key] = Batch(key[0], statements)
        mechanism.check_statement(statements[0].problem)  # remembered: once for a mechanism
    return found
