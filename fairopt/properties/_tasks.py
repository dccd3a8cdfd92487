"""Tasks of a mechanism on clusters and changed clusters: in certified batches, and in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import islice, takewhile

import numpy as np

from ..base.errors import DataError, SolverError
from ..certificates import rational
from ..mechanisms import Mechanism
from ..model._arrays import Array, Mask
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ..study.solve_many import solve_many
from ._base import Case, Deviation, Numbers, Property


def exact_tasks(mechanism: Mechanism, cluster: Cluster) -> Numbers | None:
    """Exact tasks (users, servers) as fractions, on the cluster of `Mechanism.prepare`; None if not available.

    Exact tasks are available for lexicographic max-min, PS-DSF and the largest sum of shares (alpha = 0), on small
    clusters without rates on which the mechanism is defined. For PS-DSF, which is not unique, they are simple fractions
    near the tasks of `Mechanism.solve`, if these fractions satisfy the definition; at alpha = 0 they are the optimum,
    if it is unique.

    Two fractions with denominators up to 10^6 differ by at least 10^-12, so that a floating-point share per task, or
    limit, identifies the fraction. Only ratios of shares matter: shares are scaled to integers.
    """
    if cluster.rated or not mechanism.judged_by_criterion or not accepted(mechanism, cluster):
        return None
    seen = mechanism.prepare(cluster)[0]
    rule = mechanism.criterion(seen)
    if rule.alpha not in (0, np.inf):
        return None
    if rule.scope == "game":
        return rational.nearest_psdsf(seen, np.maximum(mechanism.solve(seen, 1e-9).tasks, 0)) if rule.alpha else None
    if rule.floor.any():
        return None
    if rule.alpha == 0:
        limits = rule.limits(seen)
        share, most = _fractions(rule.share, seen.runnable), _fractions(limits, np.isfinite(limits))
        return None if share is None or most is None else rational.unique_optimum(seen, share, most)
    alone = [(seen, rule)]
    if rule.scope == "per_server":
        alone = [rational.on_one(seen, rule, i) for i in range(len(seen.servers))]
    found = [exact_optimum(*one) for one in alone]
    return None if any(one is None for one in found) else np.hstack([one.tasks for one in found if one is not None])


def exact_optimum(cluster: Cluster, rule: Criterion, share: Numbers | None = None) -> rational.Exact | None:
    """Exact lexicographic max-min with the prices of its levels; None if data are not simple fractions, or too large.

    `share` is per task, by default the criterion's.
    """
    limits = rule.limits(cluster)
    share = _fractions(rule.share, cluster.runnable) if share is None else share
    most = _fractions(limits, np.isfinite(limits))
    if share is None or most is None or not rational.tried(cluster, limits):
        return None
    common = math.lcm(*(Fraction(value).denominator for value in share[cluster.runnable]))
    rate = rational.numbers(rule.weight) / (share * common)
    usable = rational.may_run(cluster, limits)
    return rational.optimum(rational.numbers(cluster.capacity), rational.numbers(cluster.demand), usable, rate, most)


def _fractions(values: Array, some: Mask) -> Numbers | None:
    """Simple fractions that the values of the users in mask `some` represent; None if a value has no such fraction."""
    found = values.astype(object)
    # Shares per task with larger denominators cannot be identified.
    found[some] = [Fraction(value).limit_denominator(10**6) for value in values[some].tolist()]
    ulps = np.abs(found[some].astype(float) - values[some]) / np.spacing(np.abs(values[some]))
    # Shares result from at most two divisions, with errors of at most two units in the last place.
    return found if (ulps <= 2).all() else None


#: A cluster, as prepared by a mechanism, and its change or None.
Instance = tuple[Cluster, Deviation | None]


def clusters(instance: Instance) -> list[Cluster]:
    """List the cluster, and the changed cluster if there is a change."""
    cluster, deviation = instance
    return [cluster] if deviation is None else [cluster, deviation.cluster]


def case(mechanism: Mechanism, instance: Instance, tasks: Iterable[Numbers | None]) -> Case | None:
    """Case of an instance, given the tasks on its `clusters`; None if one of the clusters was not solved."""
    own, changed = [*takewhile(lambda one: one is not None, tasks), None, None][:2]
    if own is None or (changed is None) != (instance[1] is None):
        return None
    return Case(instance[0], own, instance[1], changed, mechanism)


def seen(mechanism: Mechanism, cluster: Cluster) -> Cluster:
    """Cluster as prepared by the mechanism: the pool, for single-pool mechanisms.

    Raises
    ------
    DataError
        The mechanism is not defined on the cluster.
    """
    mechanism.check(cluster)
    return mechanism.prepare(cluster)[0]


def accepted(mechanism: Mechanism, cluster: Cluster) -> bool:
    """True if the mechanism is defined on the cluster."""
    try:
        shared = seen(mechanism, cluster)
        if mechanism.judged_by_criterion:
            mechanism.criterion(shared)
    except DataError:
        return False
    return True


def cases(
    mechanism: Mechanism, instances: Sequence[Instance], tol: float, known: dict[int, Numbers | None] | None = None
) -> list[Case | None]:
    """Cases of all instances, solved in one batch; None for an instance of which a cluster was not solved.

    `known` caches the tasks of original clusters, by the identity of the cluster, for further calls.
    """
    known = {} if known is None else known
    wanted = {id(one): one for instance in instances for one in clusters(instance)}
    new = {name: one for name, one in wanted.items() if name not in known}
    tasks = known | dict(zip(new, _tasks(mechanism, list(new.values()), tol), strict=True)) if new else known
    known.update((id(cluster), tasks[id(cluster)]) for cluster, _ in instances)
    return [case(mechanism, instance, (tasks[id(one)] for one in clusters(instance))) for instance in instances]


def _tasks(mechanism: Mechanism, clusters: list[Cluster], tol: float) -> list[Numbers | None]:
    answers = solve_many(mechanism, clusters, tol=tol)
    failed = {failure.problem for failure in answers.failed}
    return [
        None if p in failed else np.maximum(answers.tasks[p, : len(cluster.users), : len(cluster.servers)], 0)
        for p, cluster in enumerate(clusters)
    ]


def exact(mechanism: Mechanism, instance: Instance) -> Case | None:
    """Case in exact arithmetic; None if `exact_tasks` is not available for one of the clusters."""
    return case(mechanism, instance, (exact_tasks(mechanism, one) for one in clusters(instance)))


def speaks_of(prop: Property, instance: Instance) -> bool:
    """True if the property applies to the cluster and its change."""
    cluster, deviation = instance
    return not prop.undefined(cluster) and (deviation is None or prop.admits(cluster, deviation))


def instances(prop: Property, cluster: Cluster, rng: np.random.Generator, most: int) -> Iterable[Instance]:
    """Instances of a cluster with up to `most` changes, or without a change if the property compares no clusters."""
    if not prop.compares:
        return [(cluster, None)]
    return [(cluster, change) for change in islice(prop.deviations(cluster, rng), most)]


def reference(mechanism: Mechanism, cluster: Cluster, case: Case) -> Numbers:
    """Tasks of every user under a max-min mechanism, (users,), in the arithmetic of the case.

    Floating-point tasks are rounded from exact tasks if the cluster is small. In exact arithmetic a cluster that is too
    large raises `SolverError`.
    """
    if not case.exact:
        seen = mechanism.prepare(cluster)[0]
        found = rational.leximin(seen, mechanism.criterion(seen), seen.max_tasks)
        return mechanism.solve(cluster).arrays.user_tasks if found is None else found.tasks.sum(axis=1).astype(float)
    tasks = exact_tasks(mechanism, cluster)
    if tasks is None:
        raise SolverError("the cluster is too large for rational arithmetic; take a smaller one")
    return np.asarray(tasks.sum(axis=1))
