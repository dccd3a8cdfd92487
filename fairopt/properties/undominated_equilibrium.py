"""Pareto domination between equilibria."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from ..base.errors import FairoptError
from ..game.all_equilibria import EnumerationOptions, Equilibria, equilibria
from ..game.best_responses import best_response
from ..mechanisms import GameMechanism, Mechanism
from ..mechanisms.psdsf import PSDSF
from ..model.cluster import Cluster
from ..result.allocation import Allocation
from ._base import Case, Dues, Numbers, Property
from ._enclosure import enclosed
from .pareto_optimality import dominating

#: Limits of the enumeration of equilibria.
_OPTIONS = EnumerationOptions(seconds=10.0, starts=5)
#: For PS-DSF best responses start from `_STARTS` random allocations; `_ALIKE` is the relative difference of tasks up to
#: which their limits count as equal.
_STARTS, _ALIKE = 24, 1e-6
_NONE = Equilibria((), (), (), False, {})


def enumerable(mechanism: Mechanism | None) -> bool:
    """True for the game of alphaPF-VDS at finite alpha."""
    game = isinstance(mechanism, GameMechanism) and mechanism.judged_by_criterion
    return game and 0 < getattr(mechanism, "alpha", np.inf) < np.inf


def all_equilibria(mechanism: Mechanism | None, cluster: Cluster) -> Equilibria:
    """Equilibria of the game at finite alpha, by `fairopt.game.equilibria`.

    The result is empty for other mechanisms, or if the enumeration fails.
    """
    if mechanism is None or not enumerable(mechanism):
        return _NONE
    try:
        return equilibria(cluster, mechanism.criterion(cluster).alpha, options=_OPTIONS)
    except FairoptError:
        return _NONE


def alternatives(mechanism: Mechanism, cluster: Cluster) -> Equilibria:
    """Known allocations that satisfy the mechanism's definition.

    For the game at finite alpha they are the equilibria that `all_equilibria` finds, and for PS-DSF the limits of best
    responses from random starts. For other mechanisms the result is empty.
    """
    if not isinstance(mechanism, PSDSF):
        return all_equilibria(mechanism, cluster)
    rng = np.random.default_rng(0)
    found: list[Allocation] = []
    for _ in range(_STARTS):
        start = cluster.gamma * rng.random(cluster.gamma.shape) * (rng.random(cluster.gamma.shape) < 0.5)
        with suppress(FairoptError):
            one = best_response(cluster, np.inf, start=start, tol=_ALIKE / 10)
            if not any(
                np.allclose(one.arrays.user_tasks, other.arrays.user_tasks, rtol=_ALIKE, atol=0) for other in found
            ):
                found.append(one)
    return Equilibria(tuple(found), (), (), False, {})


def between(allocation: Allocation) -> Numbers | None:
    """Rigorous lower bounds, (users,), on the tasks at an equilibrium, as fractions; None without an enclosure."""
    box = enclosed(allocation.cluster, allocation.criterion, allocation.tasks, allocation.log_prices)
    return None if box is None else np.asarray(box.low.sum(axis=1))


#: Relative difference below which users' tasks count as equal.
_SAME = 1e-7


class UndominatedEquilibrium(Property):
    r"""No other equilibrium of the game Pareto-dominates the allocation.

    .. math:: \nexists\, \text{equilibrium } x' : \quad x'_n \ge x_n \text{ for all } n, \quad x' \ne x

    The property is weaker than Pareto optimality, since only equilibria are compared, as far as
    `fairopt.game.equilibria` finds them; on most small clusters it finds all equilibria. Weights, placement constraints
    and zero demands are treated as in the game. With active task limits equilibria can form continua, of which only
    some members are found.

    Source: defined here; docs/equilibria.md.
    """

    name = "undominated-equilibrium"
    definition = "no other equilibrium gives one user more tasks and none fewer"
    words = "{user} has {has} tasks; in another equilibrium it has {due} and nobody has fewer"
    needs_all = True

    def unfit(self, mechanism: Mechanism | None) -> str:
        return "" if enumerable(mechanism) else "it is about alphaPF-VDS at finite alpha > 0"

    def domain(self, cluster: Cluster) -> str:
        return "" if cluster.runnable.any() else "no user can run a task"

    def dues(self, case: Case) -> Dues:
        has = case.user_tasks
        due = np.array(has, dtype=float)
        optimal = (dominating(case) <= due * (1 + _SAME)).all()  # then no enumeration is needed
        for other in () if optimal else all_equilibria(case.mechanism, case.cluster):
            if (other.arrays.user_tasks >= due * (1 - _SAME)).all():
                due = np.maximum(due, other.arrays.user_tasks)
        return has, due

    def bounds(self, low: Case, high: Case) -> Dues:
        has = high.user_tasks
        due = low.user_tasks
        for other in all_equilibria(low.mechanism, low.cluster):
            least = between(other)
            if least is not None and (least >= np.maximum(due, has)).all():
                due = least
        return has, due
