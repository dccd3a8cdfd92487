"""Inverse problem of a mechanism: weights under which it yields given tasks, or a reason why no weights do."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from .. import mechanisms
from ..base import names as _names
from ..base.errors import DataError, NotConverged
from ..base.libraries import optimize, pd
from ..mechanisms import Mechanism
from ..model import _validate
from ..model._arrays import Array, Index
from ..model.cluster import Cluster, expected
from ..model.criterion import Criterion
from ..model.merging import merge
from ..model.polytope import Polytope
from ..result.allocation import Allocation
from .stated import Frontier, closed_form, frontier, limited, ranges, runnable

#: Largest deviation of log weights from their mean in the search.
_FAR = 12.0


@dataclass(frozen=True, eq=False, repr=False)
class WeightsFound:
    """Result of `find_weights`.

    Attributes
    ----------
    weights : Series by user
        Weights, normalised to a mean of 1 over the users that can run tasks; 1 for other users.
    tasks : Series by user
        The target X: the given tasks, or with `nearest=True` the nearest attainable tasks.
    allocation : Allocation
        The certified allocation under the weights.
    error : float
        The largest `|x_n / X_n - 1|`, where x are the tasks of the allocation.
    nearest : bool
        True if `tasks` differ from the given tasks.
    scale : float
        Factor by which the given tasks were scaled; 1 unless they are infeasible.
    mechanism : str
        Label of the mechanism.
    solves : int
        Number of solves until the weights were found.
    """

    weights: pd.Series
    tasks: pd.Series
    allocation: Allocation
    error: float
    nearest: bool
    scale: float
    mechanism: str
    solves: int
    _place: Frontier | None = field(default=None)

    @cached_property
    def ranges(self) -> pd.DataFrame | None:
        """Frame by user: `weight`, and the `lowest` and `highest` weight with the same tasks and reference weight.

        For each user n separately, two linear programs yield the extremes of `phi_n / phi_ref` over all weights that
        yield the tasks, times the weight of the reference user. The reference (`ranges.attrs["reference"]`) is
        the user with the largest budget among those with an inactive task limit. The result is None for the per-server
        game and for servers without coordination, where other splits of the same tasks may have other weights, except
        on proportional servers and in the game at alpha = 1.
        """
        if self._place is None:
            return None
        users = self._place.polytope.users
        weights = self.weights.to_numpy()[users]
        low, high, reference = ranges(self._place, self.allocation.criterion, weights)
        names = self.allocation.cluster.users
        frame = pd.DataFrame(
            {"weight": weights, "lowest": low, "highest": high},
            index=pd.Index([names[n] for n in users], name="user"),
        )
        frame.attrs["reference"] = names[users[reference]]
        return frame

    @property
    def unique(self) -> bool | None:
        """True if the weights are unique up to a common factor; None if uniqueness is unknown."""
        if (ends := self.ranges) is None:
            return None
        # Ranges of smaller relative width are attributed to the accuracy of the linear programs.
        return bool((ends["highest"] - ends["lowest"] <= 1e-6 * ends["weight"]).all())

    def to_frame(self) -> pd.DataFrame:
        """Frame by user: `weight`, target `tasks`, and `reached`, the tasks of the allocation."""
        return pd.DataFrame({"weight": self.weights, "tasks": self.tasks, "reached": self.allocation.user_tasks})

    def __repr__(self) -> str:
        to = max(10.0 ** np.ceil(np.log10(max(self.error, 1e-300))), 1e-9)
        head = f"weights for {self.mechanism}, mean 1; tasks agree to {to:.0e}"
        if self.nearest:
            head += " with the nearest that were found"
        if self.scale != 1:
            head += f", from {self.scale:.4g} times those stated"
        frame = self.to_frame()
        shown = frame if len(frame) <= 20 else pd.concat([frame.head(10), frame.tail(10)])
        return f"{head}\n{shown.to_string(float_format='{:.6g}'.format)}"


def find_weights(
    cluster: Cluster,
    mechanism: Mechanism | str,
    *,
    tasks: Any = None,
    shares: Any = None,
    users: Iterable[object] | None = None,
    tol: float = 1e-6,
    nearest: bool = False,
) -> WeightsFound:
    r"""Find weights under which a mechanism yields given tasks X, and verify them by a solve under these weights.

    .. math:: \phi_n = (G_n u_n^{\alpha-1} X_n^\alpha)^{1/\alpha} \ \ (\alpha < \infty), \qquad
        \phi_n = u_n X_n \ \ (\alpha = \infty)

    where :math:`u_n` is the share per task, and :math:`G_n` the price of a task (G is normal to the feasible set at X).

    Parameters
    ----------
    cluster : Cluster
        Its weights serve as initial values.
    mechanism : Mechanism or str
        A mechanism of the alpha-fair family with alpha in (0, infinity], over a pool, over servers, or per server,
        such as `"alphapf-vds(alpha=3)"`.
    tasks : (users,)
        X in tasks, as a list, or a series or dict by user.
    shares : (users,)
        Instead of tasks, dominant shares :math:`x_n \max_r d_{nr} / C_r` (`Allocation.dominant_shares`).
    users : iterable, optional
        Names of users in the order of a list of tasks or shares; all users that can run tasks must be included.
    tol : float
        Largest relative error of tasks.
    nearest : bool
        If X is not attainable, use the largest feasible multiple `t X`, increased to Pareto efficiency; in the game,
        the nearest allocation that was found. Default: raise an error.

    For global mechanisms weights exist if and only if X > 0 is Pareto efficient; they follow from linear programs
    (`docs/inverse.md`). If weights are not unique, the weights of the cluster are returned if they yield X; otherwise,
    for finite alpha, the weights whose budgets are nearest to the budgets of the cluster's weights. `ranges` and
    `unique` of the result tell to which extent weights are determined.

    For the per-server game, and for servers without coordination, weights are found iteratively. Failure does not prove
    that no weights exist, unless the tasks are infeasible (or alpha = 1, where the game is CEEI on servers).

    Raises
    ------
    DataError
        The mechanism does not depend on weights in this form (alpha = 0, floors, another utility); or tasks are not one
        number per user, are zero, exceed a task limit, or are infeasible or Pareto inefficient; the message explains.
    NotConverged
        No weights were found in the game. The message names the user with the largest error.
    SolverError
        A solve fails (`Mechanism.solve`).

    >>> import fairopt as fo
    >>> found = fo.find_weights(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), "drf", tasks=[3.6, 1.8])
    >>> found.weights.round(3).tolist()
    [1.143, 0.857]
    """
    chosen = mechanisms.one(mechanism)
    tol = _validate.tolerance(tol)
    chosen.check(expected(cluster, "tasks that weights explain"))
    seen, _ = chosen.prepare(cluster)
    rule = criterion_of(chosen, seen)
    stated = stated_tasks(seen, tasks, shares, users, tol)
    merged = merge(seen, users=False).cluster
    polytope = Polytope(merged, rule.limits(seen))
    who = polytope.users
    if not len(who):
        raise DataError("no user of the cluster can run anything: there are no weights to find")
    place = frontier(polytope, np.minimum(stated[who], polytope.limit))
    exact = (
        rule.scope in ("pool", "servers")
        or polytope.cluster.shape[1] == 1
        or (rule.scope == "game" and rule.alpha == 1)
    )
    scale, moved = 1.0, False
    if place.scale < 1 - tol or (exact and (place.rises > tol).any()):
        if not nearest:
            raise DataError(_reason(place, tol))
        scale, moved = min(place.scale, 1.0), True
    wanted = place.tasks if exact else stated[who] * scale

    def answer(weights: Array, on: Cluster = merged) -> Allocation:
        every = np.ones(len(seen.users))
        every[who] = weights / weights.mean()
        return chosen.solve(on.derived(weight=every), min(chosen.default_tol, tol))

    own = seen.weight[who]
    starts = [own, closed_form(place, rule, own) if exact else wanted / polytope.reach]
    found = matched(answer, starts, wanted, who, tol)
    if found.error > tol and not nearest:
        raise NotConverged(_unmatched(chosen, found, wanted, who, exact))
    if len(merged.servers) < len(cluster.servers):
        found = replace(found, allocation=answer(found.weights, cluster))
    got, names = found.allocation.arrays.user_tasks[who], pd.Index(cluster.users, name="user")
    every, given = np.ones(len(names)), np.zeros(len(names))
    every[who], given[who] = found.weights / found.weights.mean(), wanted if found.error <= tol else got
    return WeightsFound(
        pd.Series(every, names, name="weight"), pd.Series(given, names, name="tasks"), found.allocation,
        float(np.abs(got / given[who] - 1).max()), moved or found.error > tol, scale, str(chosen), found.found_at,
        place if exact else None,
    )  # fmt: skip


def _reason(place: Frontier, tol: float) -> str:
    """Reason why no weights yield the tasks of `place`."""
    polytope = place.polytope
    cluster, remedy = polytope.cluster, "or ask for the nearest with nearest=True"
    if place.scale < 1 - tol:
        return (
            f"these tasks are infeasible: {_names.some(polytope.named(place.short))} would not do for more than "
            f"{place.scale:.6g} times all of them; scale them down, {remedy}"
        )
    more = np.flatnonzero(place.rises > tol)
    more = more[np.argsort(-place.rises[more], kind="stable")]
    who = [f"{cluster.users[polytope.users[n]]!r} ({100 * place.rises[n]:.3g}% more)" for n in more]
    return (
        f"users could use idle capacity, which the mechanism would not leave idle: with all others' tasks as stated, "
        f"there is more at the same time for user {_names.listed(who, 5)}; raise these, {remedy}"
    )


def _unmatched(mechanism: Mechanism, found: Matched, wanted: Array, who: Index, exact: bool) -> str:
    """Message of the error for tasks `wanted` (users,) of users `who` that no weights attain; `exact` if some exist."""
    reached = found.allocation.arrays.user_tasks[who]
    n = int(np.argmax(np.abs(reached / wanted - 1)))
    name = found.allocation.cluster.users[who[n]]
    text = (
        f"{mechanism}: no weights were found; nearest are tasks in which user {name!r} has "
        f"{reached[n]:.6g} instead of {wanted[n]:.6g}"
    )
    if exact:
        return f"{text}. There are weights for them, but tasks follow weights so steeply that tol must be relaxed"
    return (
        f"{text}. That is no proof that there are none: servers that share on their own leave capacity idle, and which "
        "tasks they can give is not known beforehand. Take the nearest with nearest=True, or relax tol"
    )


@dataclass(frozen=True)
class Matched:
    """Best weights of a search.

    Attributes
    ----------
    weights : (users,), the weights
    allocation : the allocation under these weights
    error : largest relative error of the tasks of the allocation
    found_at : number of solves until the weights were found
    """

    weights: Array
    allocation: Allocation
    error: float
    found_at: int


def matched(
    answer: Callable[[Array], Allocation],
    starts: list[Array],
    stated: Array,
    users: Index,
    tol: float,
) -> Matched:
    """Search for weights (users,) under which `answer` has the tasks `stated`, (users,), or tasks as near as possible.

    With X = `stated`, the iteration is `log phi += log X - log x(phi)`. For global programs with alpha in (0,
    infinity) the derivative of log x with respect to log phi is a projection (on the tangent space of the active
    constraints, in the metric of budgets), and both X and x(phi) are on the Pareto frontier, so that for a constant
    active set the iteration is Newton's method; on one server under max-min a single step is exact. In the game, where
    servers differ, Anderson acceleration is required.

    If weights in `starts` attain the tolerance, they are returned; otherwise the iteration starts at the best of
    `starts`.

    Source: Walker and Ni, "Anderson acceleration for fixed-point iterations", SIAM J. Numer. Anal. 49 (2011).
    """
    looked, begun, best = 0, 0, list[Matched]()

    def off(log_weights: Array) -> Array:
        """Residual `log X - log x` of the allocation under the given weights, (users,).

        Raises `StopIteration` at the tolerance, and `NoConvergence` after 40 solves without a smaller error or if the
        error is the same for all users.
        """
        nonlocal looked
        weights = np.exp(np.clip(log_weights - log_weights.mean(), -_FAR, _FAR))
        found, looked = answer(weights), looked + 1
        tasks = np.maximum(found.arrays.user_tasks[users], np.finfo(float).tiny)
        error = float(np.abs(stated / tasks - 1).max(initial=0.0))
        best[:] = [min([*best, Matched(weights, found, error, looked)], key=lambda one: one.error)]
        if error <= tol:
            raise StopIteration
        missing = np.log(stated) - np.log(tasks)
        # If all users have the same relative error, the step does not change ratios of weights.
        if looked - max(best[0].found_at, begun) > 40 or (begun and np.ptp(missing) <= 1e-3 * tol):
            raise optimize.NoConvergence
        return np.asarray(missing)

    with suppress(StopIteration), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # raised if successive steps are nearly parallel
        for start in starts:
            off(np.log(start))
        # Acceleration is fast for smooth dependence on weights; short plain steps also converge at a kink.
        for memory, step in ((5, 1.0), (0, 1.0), (0, 0.5), (0, 0.2)):
            begun = looked
            with suppress(optimize.NoConvergence, NotConverged):  # a solve may fail for weights that span many decades
                optimize.anderson(off, np.log(best[0].weights), alpha=step, M=memory, maxiter=200, line_search=None)
    return best[0]


def criterion_of(mechanism: Mechanism, seen: Cluster) -> Criterion:
    """Criterion of the mechanism on the cluster; `DataError` if `find_weights` does not support the mechanism."""
    probe = np.linspace(1.0, 2.0, len(seen.users))
    rule = mechanism.criterion(seen.derived(weight=probe))
    if type(rule) is not Criterion or not mechanism.judged_by_criterion:
        raise DataError(f"{mechanism} is not of the alpha-fair family: find_weights knows no prices for it")
    if rule.alpha == 0:
        raise DataError(f"weights do not matter to {mechanism} (alpha = 0); choose an alpha > 0")
    if not np.array_equal(rule.weight, probe):
        raise DataError(f"weights do not matter to {mechanism}; choose another mechanism, such as DRF or AlphaFair")
    if rule.floor.any():
        raise DataError(f"{mechanism} has floors, which move with the weights; use AlphaFair, or part=0")
    return mechanism.criterion(seen)


def stated_tasks(seen: Cluster, tasks: Any, shares: Any, users: Iterable[object] | None, tol: float) -> Array:
    """Target tasks, (users,), from given tasks or dominant shares; 0 for users that cannot run tasks.

    Invalid tasks (`find_weights`) raise `DataError`.
    """
    if (tasks is None) == (shares is None):
        raise DataError("give either tasks or shares: find_weights(cluster, mechanism, tasks=[...])")
    argument = "tasks" if shares is None else "shares"
    given = _validate.per_user(tasks if shares is None else shares, argument, seen.users, users)
    if missing := [seen.users[n] for n in np.flatnonzero(np.isnan(given) & seen.runnable)]:
        raise DataError(f"{argument} lacks {_names.some(missing)}, who can run tasks; give all of them")
    runnable(given, argument, seen, "no weight > 0 gives it nothing: drop it with cluster.drop_user, or give it some")
    if shares is not None:
        given = given / seen.dominant_share_per_task
    given = np.where(seen.runnable, given, 0.0)
    limited(given, seen, tol, "ask for at most these")
    return given
