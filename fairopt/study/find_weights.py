"""The weights with which a mechanism gives stated tasks, or why there are none."""

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

#: Weights that are looked at differ from their mean by at most this, in logarithms.
_FAR = 12.0


@dataclass(frozen=True, eq=False, repr=False)
class WeightsFound:
    """Result of `find_weights`.

    Attributes
    ----------
    weights : Series by user
        Their mean over the users who can run tasks is 1; users who can run nothing have 1.
    tasks : Series by user
        The tasks that were to be reached: those stated, or with `nearest=True` the nearest that can be.
    allocation : Allocation
        The certified answer with these weights.
    error : float
        The largest `|x_n / X_n - 1|` of its tasks x against `tasks`.
    nearest : bool
        Are `tasks` others than those stated?
    scale : float
        What all stated tasks were multiplied with to find these; 1 unless they were infeasible.
    mechanism : str
    solves : int
        Answers that were looked at until this one was found.
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
        """`lowest` and `highest` by user: the weights that give the same tasks, where the reference keeps its own.

        The ends of `phi_n / phi_ref` over all weights that give these tasks, times the reference's weight: one at a
        time, not all at once. The reference (`ranges.attrs["reference"]`) is the user with the largest budget of those
        whose task limit does not bind. By two linear programs per user. None for the per-server game and for servers
        that do not coordinate, where other splits of the same tasks may have other weights.
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
        """True if the weights are unique up to a common factor; None where that is not known."""
        if (ends := self.ranges) is None:
            return None
        # Ratios of weights that differ by less than this part are the same.
        return bool((ends["highest"] - ends["lowest"] <= 1e-6 * ends["weight"]).all())

    def to_frame(self) -> pd.DataFrame:
        """One row per user: `weight`, the tasks wanted (`tasks`) and those `reached`."""
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
    """Weights with which a mechanism gives stated tasks; the answer with them is solved for and compared.

    Parameters
    ----------
    cluster : whose users get new weights
    mechanism : of the alpha-fair family with alpha in (0, infinity], over a pool, over servers, or per server; or its
        name, such as `"alphapf-vds(alpha=3)"`
    tasks : (users,), in tasks, or a series or dict by user
    shares : the same as dominant shares `k_n x_n` (`Allocation.dominant_shares`), in place of tasks
    users : the names that a list of tasks or shares is in the order of; all who can run tasks must be among them
    tol : by what part tasks may miss those stated
    nearest : where stated tasks cannot be given, take the nearest multiple `t X` that is feasible, with what some users
        can still have on top; in the game the nearest answer that was found. Default: an error that says why

    Global mechanisms: tasks X > 0 have weights if and only if nobody could have more without another having less. For
    finite alpha prices that support X give them, `phi_n = (w_n u_n^(alpha-1) X_n^alpha)^(1/alpha)`, w_n the price of a
    task; for max-min `phi_n = u_n X_n` will do (`docs/inverse.md`). Both are linear programs. Of several weights the
    cluster's own are taken if they do; otherwise for finite alpha those whose budgets are nearest to what the cluster's
    own weights ask for. `ranges` and `unique` of the result tell how much they are decided.

    The per-server game and servers that do not coordinate: weights are looked for from one certified answer to the
    next. That none are found is then no proof that there are none, unless the tasks are infeasible (or alpha = 1, where
    the game is the global program of CEEI on servers).

    Raises
    ------
    DataError
        The mechanism has no weights that could be found (alpha = 0, floors, a utility of its own); tasks are not one
        number per user, zero, above a task limit, infeasible, or some user could have more: named.
    NotConverged
        In the game: no weights were found. The message names the user who is farthest off.
    SolverError
        As `Mechanism.solve`.
    """
    chosen = mechanisms.one(mechanism)
    tol = _validate.tolerance(tol)
    chosen.check(expected(cluster))
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
    """Why no weights give these tasks."""
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
        f"capacity idles that somebody could use, and the mechanism wastes none: with all others' tasks as stated, "
        f"there is more at the same time for user {_names.listed(who, 5)}; raise these, {remedy}"
    )


def _unmatched(mechanism: Mechanism, found: Matched, wanted: Array, who: Index, exact: bool) -> str:
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
    """The best weights found.

    Attributes
    ----------
    weights : (users,)
    allocation : the answer with them
    error : by what part its tasks miss the stated ones
    found_at : the number of this answer among those looked at
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
    """The weights (users,) of `users` with which the answer has the tasks `stated` (users,), or comes nearest.

    The step is `log phi += log X - log x(phi)`. For global programs with alpha in (0, infinity) the derivative of log x
    by log phi is a projection (onto the changes that leave what is full full, in the metric of budgets), and both X and
    x(phi) are on the frontier, so that it is Newton's step where prices stay the same; on one server under max-min it
    is exact. In the game, where servers differ, Anderson's mixing of the last steps makes up for the difference.

    The first of `starts` that does at once is taken, otherwise the search begins at the best of them.

    Source: Walker and Ni, "Anderson acceleration for fixed-point iterations", SIAM J. Numer. Anal. 49 (2011).
    """
    looked, begun, best = 0, 0, list[Matched]()

    def off(log_weights: Array) -> Array:
        """`log X - log x` of the answer with these weights, (users,)."""
        nonlocal looked
        weights = np.exp(np.clip(log_weights - log_weights.mean(), -_FAR, _FAR))
        found, looked = answer(weights), looked + 1
        tasks = np.maximum(found.arrays.user_tasks[users], np.finfo(float).tiny)
        error = float(np.abs(stated / tasks - 1).max(initial=0.0))
        best[:] = [min([*best, Matched(weights, found, error, looked)], key=lambda one: one.error)]
        if error <= tol:
            raise StopIteration
        missing = np.log(stated) - np.log(tasks)
        # Where all miss the same part, no step changes weights.
        if looked - max(best[0].found_at, begun) > 40 or (begun and np.ptp(missing) <= 1e-3 * tol):
            raise optimize.NoConvergence
        return np.asarray(missing)

    with suppress(StopIteration), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # LinAlgWarning, of steps that no longer differ
        for start in starts:
            off(np.log(start))
        # Mixing is fast where answers follow weights smoothly; plain small steps also end at a kink.
        for memory, step in ((5, 1.0), (0, 1.0), (0, 0.5), (0, 0.2)):
            begun = looked
            with suppress(optimize.NoConvergence, NotConverged):  # weights may be too far apart for an answer
                optimize.anderson(off, np.log(best[0].weights), alpha=step, M=memory, maxiter=200, line_search=None)
    return best[0]


def criterion_of(mechanism: Mechanism, seen: Cluster) -> Criterion:
    """The criterion on the cluster, of a mechanism whose weights can be found."""
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
    """The tasks that are asked for, (users,)."""
    if (tasks is None) == (shares is None):
        raise DataError("give either tasks or shares: find_weights(cluster, mechanism, tasks=[...])")
    argument = "tasks" if shares is None else "shares"
    given = _validate.per_user(tasks if shares is None else shares, argument, seen.users, users)
    if missing := [seen.users[n] for n in np.flatnonzero(np.isnan(given) & seen.runnable)]:
        raise DataError(f"{argument} says nothing of {_names.some(missing)}, who can run tasks; state all of them")
    runnable(given, argument, seen, "no weight > 0 gives it nothing: drop it with cluster.drop_user, or give it some")
    if shares is not None:
        given = given / seen.dominant_share_per_task
    given = np.where(seen.runnable, given, 0.0)
    limited(given, seen, tol, "ask for at most these")
    return given
