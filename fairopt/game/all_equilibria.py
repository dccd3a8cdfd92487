"""`equilibria`: all equilibria of alphaPF-VDS at one alpha, each certified.

Candidates with equal user tasks count as one equilibrium: their splits over servers are averaged, the equations of the
active set are solved by Newton's method, and the index is computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, overload

import numpy as np

from ..base import clock
from ..base.errors import DataError, SolverError
from ..base.libraries import pd
from ..base.names import apart
from ..certificates import ByCriterion, certify_problem
from ..core.accuracy import HALF_PRECISION, REFINED, VISIBLE
from ..core.first_order import Active
from ..core.game import engine
from ..core.game.equilibrium_system import EquilibriumSystem
from ..core.game.index import active_at, index, spectral_radius
from ..core.game.rounds import Sweeps, settle
from ..core.identification import identified
from ..model import _validate
from ..model._arrays import Array, Index
from ..model.cluster import Cluster, expected
from ..model.criterion import Criterion, criterion, virtual_share_per_task
from ..model.merging import Merging, Split, merge
from ..model.problem import Problem
from ..result.allocation import Allocation, Stats, idle
from .best_responses import generator_of
from .cells import Game, TooLargeError, cells, faces
from .parts import solutions

#: Relative difference below which tasks count as equal, two orders above the tolerance of certificates.
_SAME = VISIBLE


@dataclass(frozen=True, eq=False, repr=False)
class Equilibria(Sequence[Allocation]):
    r"""Sequence of certified allocations, the equilibria of one game, in the order of decreasing welfare.

    .. math:: W(x) = \sum_n \phi_n \log x_n

    Attributes
    ----------
    allocations : tuple of Allocation
    indices : tuple of int
        +1 or -1; 0 where tasks are not locally unique, or the data are degenerate.
    radii : tuple of float
        Spectral radius of a round of best responses (Gauss-Seidel): below 1 the equilibrium is locally stable, above 1
        unstable. NaN where a task limit is active.
    complete : bool
        True if all products of faces were enumerated and the indices sum to +1, as indices of all equilibria do;
        `docs/equilibria.md` states what this proves.
    tried : mapping of str to str
        Methods that searched for equilibria, and their outcome.

    >>> import fairopt as fo
    >>> found = fo.game.equilibria(fo.Cluster([[2, 2], [1, 2]], [[3, 2], [1, 4]]), 3)
    >>> found.complete, found.indices, found.user_tasks.round(3).tolist()
    (True, (1,), [[0.649, 0.675]])
    """

    allocations: tuple[Allocation, ...]
    indices: tuple[int, ...]
    radii: tuple[float, ...]
    complete: bool
    tried: Mapping[str, str]

    def __len__(self) -> int:
        return len(self.allocations)

    @overload
    def __getitem__(self, key: int) -> Allocation: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Allocation, ...]: ...
    def __getitem__(self, key: int | slice) -> Allocation | tuple[Allocation, ...]:
        return self.allocations[key]

    def __iter__(self) -> Iterator[Allocation]:
        return iter(self.allocations)

    @property
    def attrs(self) -> dict[str, object]:
        """Attributes of frames: `complete` and `tried`."""
        return {"complete": self.complete, "tried": dict(self.tried)}

    @property
    def user_tasks(self) -> Array:
        """Tasks of users, (equilibria, users)."""
        return np.array([one.arrays.user_tasks for one in self.allocations])

    def to_frame(self) -> pd.DataFrame:
        """Frame by equilibrium, from 1: `index`, `radius`, `stable`, `certificate`, and every user's tasks."""
        columns: dict[str, object] = {
            "index": self.indices,
            "radius": self.radii,
            "stable": [radius < 1 for radius in self.radii],
            "certificate": [one.certificate.residual for one in self.allocations],
        }
        names = apart(self.allocations[0].cluster.users, list(columns), "user")
        columns |= dict(zip(names, self.user_tasks.T, strict=True))
        frame = pd.DataFrame(columns, index=self._numbers)
        frame.attrs = self.attrs
        return frame

    def preferences(self) -> pd.DataFrame:
        """Frame by user: tasks in each equilibrium, and the user's best equilibrium, from 1 (`best`; 0 for a tie)."""
        tasks = self.user_tasks.T
        frame = pd.DataFrame(
            tasks, columns=self._numbers, index=pd.Index(self.allocations[0].cluster.users, name="user")
        )
        most, least = tasks.max(axis=1), tasks.min(axis=1)
        frame["best"] = np.where(most - least <= _SAME * most, 0, tasks.argmax(axis=1) + 1)
        return frame

    def pareto(self) -> pd.DataFrame:
        """Pairwise Pareto comparison: `better` (the row dominates the column), `worse`, `incomparable` or `same`."""
        tasks = self.user_tasks
        words = np.full((len(self), len(self)), "same", dtype=object)
        for a, mine in enumerate(tasks):
            for b, other in enumerate(tasks):
                more, less = (
                    bool((mine > other * (1 + _SAME)).any()),
                    bool((mine < other * (1 - _SAME)).any()),
                )
                if more or less:
                    words[a, b] = "incomparable" if more and less else "better" if more else "worse"
        return pd.DataFrame(words, index=self._numbers, columns=self._numbers)

    @property
    def _numbers(self) -> pd.Index:
        return pd.RangeIndex(1, len(self) + 1, name="equilibrium")

    def __repr__(self) -> str:
        if not self.allocations:
            return "no equilibrium found"
        known = "all of them" if self.complete else "there may be more"
        many = f"{len(self)} equilibri{'um' if len(self) == 1 else 'a'}"
        lines = [f"{self.allocations[0].mechanism}: {many}, {known}"]
        lines += self.to_frame().to_string(float_format="{:.6g}".format).splitlines()
        return "\n".join([*lines, *(f"{name}: {text}" for name, text in self.tried.items())])


@dataclass(frozen=True)
class Verified:
    """Equilibrium with its active set and index.

    Attributes
    ----------
    active : active set of the equilibrium, with refined tasks and prices
    tasks, log_prices : (users, servers), and per resource unit (servers, resources), -inf for zero prices
    index : +1 or -1; 0 where tasks are not locally unique, or where it depends on nearly active constraints
    radius : spectral radius of a round of best responses
    by : name of the first method that found the equilibrium
    """

    active: Active
    tasks: Array
    log_prices: Array
    index: int
    radius: float
    by: str


class Collected:
    """Distinct equilibria of one game, collected from candidates."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.system = EquilibriumSystem.of(problem.polytope, problem.criterion)
        self.found: list[Verified] = []
        self.lost = 0  # number of candidates whose equations could not be solved

    @property
    def whole(self) -> bool:
        """True if no index is 0, indices sum to 1, and the equations of all candidates were solved."""
        indices = [one.index for one in self.found]
        return sum(indices) == 1 and 0 not in indices and not self.lost

    def take(self, tasks: Array, log_price: Array, by: str) -> int:
        """Add candidates: tasks (candidates, pairs), log level prices (candidates, servers, resources).

        Tasks and prices of candidates with equal user tasks X are averaged: the splits of an equilibrium form a convex
        set, as do its supporting prices, and a relative interior point has all pairs and rows that can be active.
        Returns the number of new equilibria.
        """
        before, system = len(self.found), self.system
        totals = np.log(np.add.reduceat(tasks, system.start[:-1], axis=1)) if len(tasks) else tasks
        left = np.arange(len(tasks))
        while len(left):
            near = np.abs(totals[left] - totals[left[0]]).max(axis=1) < _SAME
            group, left = left[near], left[~near]
            if not self._known(totals[group[0]] + np.log(system.largest)):
                mean = np.logaddexp.reduce(system.alpha * log_price[group]) - np.log(len(group))
                self._add(tasks[group].mean(axis=0), mean[system.polytope.row_server, system.polytope.row_resource], by)
        return len(self.found) - before

    def _known(self, log_total: Array) -> bool:
        """True if a known equilibrium has the log user tasks `log_total` (users,)."""
        return any(np.abs(np.log(one.active.total) - log_total).max() < _SAME for one in self.found)

    def _add(self, tasks: Array, log_rows: Array, by: str) -> None:
        """Add the equilibrium near tasks (pairs,) and log prices of whole capacities (rows,), with index and radius.

        The index is 0 if it depends on weakly active pairs or rows.
        """
        problem, polytope = self.problem, self.problem.polytope
        try:
            active = identified(
                polytope, problem.criterion, polytope.allocation(tasks / self.system.gamma), log_rows, None
            )
        except SolverError:
            self.lost += 1
            return
        # Candidates that differ by more than `_SAME` may converge to the same equilibrium.
        if not self._known(np.log(active.total)):
            whole = polytope.allocation(
                polytope.inside(active.part * active.total[polytope.pair_user] / polytope.gamma)
            )
            log_prices = polytope.log_unit_prices(active.prices[0].log_rows)
            found, more = (active_at(problem, whole, log_prices, weak) for weak in (0.0, HALF_PRECISION))
            assert found is not None
            assert more is not None
            sign = index(found)
            sign = sign if index(more) == sign else 0
            self.found.append(Verified(active, whole, log_prices, sign, spectral_radius(found), by))


@dataclass(frozen=True)
class EnumerationOptions:
    """Limits of an enumeration."""

    #: Limit of CPU seconds.
    seconds: float = 60.0
    #: Largest number of subsets of users and resources, summed over servers (`subsets`), and of faces (`faces`).
    subsets: float = 1e6
    faces: int = 24_000
    #: Without enumeration: number of random starts of best responses (`starts`), and round limit of each (`rounds`).
    starts: int = 20
    rounds: int = 2000


#: Default limits.
OPTIONS = EnumerationOptions()


#: Tolerance of the engine's solution; relative change of tasks in a round at which best responses have converged.
_FINE = REFINED
#: Relative perturbation of degenerate data.
JITTER = VISIBLE
_OTHER_ALPHA = {
    0.0: "alpha is 0, where every server has a linear program of its own and splits are rarely unique: take a small "
    "positive alpha, such as 0.01",
    math.inf: "alpha is infinite: PS-DSF has continua of allocations, and PSDSF().solve(cluster) is their limit from "
    "finite alpha: take a large finite alpha, such as 64",
}


def equilibria(
    cluster: Cluster,
    alpha: float,
    *,
    tol: float = 1e-8,
    rng: np.random.Generator | int | None = None,
    options: EnumerationOptions = OPTIONS,
) -> Equilibria:
    r"""Find equilibria of alphaPF-VDS, on small clusters all equilibria.

    .. math:: x_{\cdot i} \in \arg\max_{y \in \mathcal{X}_i(x)} \sum_n \phi_n
        f_\alpha\Big(\frac{y_n + \sum_{j \ne i} x_{nj}}{\gamma_{ni} \phi_n}\Big) \quad \text{for every server i}

    Proportional servers and users are merged. Within `options.seconds` every product of faces of the servers' polytopes
    is examined (`docs/algorithms/equilibria.md`). If this takes longer, the result has the engine's solution and the
    limits of best responses from random starts, and `complete` is False.

    Parameters
    ----------
    cluster : Cluster
    alpha : float
        In (0, infinity).
    tol : float
        Bound on every certificate; equilibria whose certificate exceeds it are omitted, and counted in `tried`.
    rng : Generator or int, optional
        Generator or seed of random starts.
    options : EnumerationOptions
        Limits of the enumeration.

    Returns
    -------
    Equilibria
        Sequence of allocations with `indices`, `radii`, `complete`, `tried`, `to_frame()`, `preferences()` and
        `pareto()`. Allocations with equal tasks of users are one equilibrium, regardless of the split over servers.

    Raises
    ------
    DataError
        alpha is 0 or infinite, no user can run a task, or another argument is invalid.

    With active task limits equilibria form continua (a generalised Nash equilibrium): equilibria without active limits
    are enumerated, equilibria with active limits are searched heuristically, and `complete` is False.

    >>> import fairopt as fo
    >>> fo.game.equilibria(fo.Cluster([[2, 2], [1, 2]], [[3, 2], [1, 4]]), 3).indices
    (1,)
    """
    alpha, tol, rng = _validate.alpha(alpha), _validate.tolerance(tol), generator_of(rng)
    if alpha in _OTHER_ALPHA:
        raise DataError(_OTHER_ALPHA[alpha])
    watch = clock.Watch()
    merging = merge(expected(cluster, "enumerated equilibria"))
    problem = Problem(merging.cluster, _rule(merging.cluster, alpha))
    if not len(problem.polytope.users):
        raise DataError("no user can run anything: there is one allocation, the empty one; check eligible and demands")
    collected, tried = Collected(problem), {}
    system = collected.system
    made = enumerated(system, options)
    collected.take(made.tasks, made.log_price, "enumeration")
    bounded = bool(len(problem.polytope.limited))
    if not (made.reason or bounded or collected.whole):
        made = enumerated(jittered(system), options)
        collected.take(made.tasks, made.log_price, "enumeration")
        tried["ties"] = f"enumerated with all data changed by {JITTER:g}, then solved as they are"
    finished = not (made.reason or bounded) and collected.whole
    tried["enumeration"] = _told(made, bounded, collected)
    if not finished:
        others = {"engine": _of_engine(problem, system), "best responses": _responses(problem, system, rng, options)}
        for name, offers in others.items():
            new = [collected.take(tasks[None], log_price[None], name) for tasks, log_price in offers]
            tried[name] = f"answers: {len(new)}, of them new: {sum(new)}"
    original = Problem(cluster, _rule(cluster, alpha))
    pairs = [(_allocation(original, merging, one, tol, watch), one) for one in _ends(collected.found)]
    missed = sum(found.flagged for found, _ in pairs)
    if missed:
        tried["certificates"] = f"{missed} more missed tol={tol:g}"
    pairs = sorted((each for each in pairs if not each[0].flagged), key=lambda each: -_welfare(each[0]))
    return Equilibria(
        tuple(found for found, _ in pairs),
        tuple(one.index for _, one in pairs),
        tuple(one.radius for _, one in pairs),
        finished and not missed,
        tried,
    )


def _rule(cluster: Cluster, alpha: float) -> Criterion:
    return criterion(cluster, partial(virtual_share_per_task, cluster), alpha, "game")


def _ends(found: list[Verified]) -> list[Verified]:
    """All isolated equilibria, and two distant equilibria of each continuum (index 0, equal active sets)."""
    kept = [one for one in found if one.index != 0]
    continua: dict[tuple[bytes, bytes], list[Verified]] = {}
    for one in found:
        if one.index == 0:
            key = one.active.pairs.tobytes(), one.active.rows.tobytes()
            continua.setdefault(key, []).append(one)
    for points in continua.values():
        tasks = np.log([one.active.total for one in points])
        first = int(np.abs(tasks - tasks[0]).max(axis=1).argmax())
        last = int(np.abs(tasks - tasks[first]).max(axis=1).argmax())
        kept += [points[k] for k in sorted({first, last})]
    return kept


def _told(made: Enumeration, bounded: bool, collected: Collected) -> str:
    """Phrase that describes the outcome of the enumeration."""
    if made.reason:
        return f"not finished: {made.reason}"
    text = f"finished: {made.cells} products of faces, {made.parts} parts solved"
    text += f"; indices sum to {sum(one.index for one in collected.found)}"
    if any(one.index == 0 for one in collected.found):
        text += "; index 0: degenerate, or part of a continuum"
    return f"{text}; task counts can bind, where equilibria are continua" if bounded else text


def _of_engine(problem: Problem, system: EquilibriumSystem) -> Iterator[tuple[Array, Array]]:
    """Yield tasks (pairs,) and log level prices (servers, resources) of the engine's first solution with prices."""
    polytope = problem.polytope
    for found in engine.solutions(problem, _FINE):
        if found.log_prices is not None:
            tasks = found.tasks[polytope.users[polytope.pair_user], polytope.pair_server]
            levels = polytope.by_server(polytope.log_row_prices(found.log_prices), unused=-np.inf) / system.alpha
            yield tasks / system.largest[system.user], levels
            return


def _responses(
    problem: Problem, system: EquilibriumSystem, rng: np.random.Generator, options: EnumerationOptions
) -> Iterator[tuple[Array, Array]]:
    """Yield tasks (pairs,) and log level prices at the end of best responses (Gauss-Seidel) from each random start."""
    sweeps, users = Sweeps(system), np.bincount(system.server)
    for _ in range(options.starts):
        part = rng.exponential(size=len(system.user)) / users[system.server]
        state = sweeps.start(problem.polytope.inside(part) * system.gamma)
        settle(sweeps.rounds(state), options.rounds, _FINE)
        yield state.tasks.copy(), np.where(system.row, state.log_price, -np.inf)


def _allocation(problem: Problem, merging: Merging, one: Verified, tol: float, watch: clock.Watch) -> Allocation:
    """Expand an equilibrium of the merged cluster to a certified allocation of the original cluster."""
    begun, alpha = clock.cpu(), problem.criterion.alpha
    split = Split.of(merging, one.tasks)
    certificate, proof = certify_problem(problem, split, merging.split_prices(one.log_prices))
    stats = Stats(one.by, "none", "found", 0, 0.0, 0.0, watch.cpu, clock.cpu() - begun, {}, watch.loops)
    cluster = problem.cluster
    notes = idle([cluster.users[n] for n in np.flatnonzero(~cluster.runnable)])
    notes += (_index_note(one),)
    name = f"alphaPF-VDS(alpha={alpha:g})"
    judge = ByCriterion(problem.criterion)
    made = name, cluster, split(), certificate, problem.criterion, proof, stats, notes, tol, judge
    return Allocation(*made, index=one.index)


def _index_note(one: Verified) -> str:
    way = "best responses leave it" if one.radius > 1 else "best responses come back to it"
    return f"an equilibrium of index {one.index:+d}" + ("" if math.isnan(one.radius) else f"; {way}")


def _welfare(found: Allocation) -> float:
    tasks = found.arrays.user_tasks
    runs = tasks > 0
    return float(found.cluster.weight[runs] @ np.log(tasks[runs]))


class Enumeration(NamedTuple):
    """Result of an enumeration.

    Attributes
    ----------
    tasks, log_price : (solutions, pairs), and log level prices (solutions, servers, resources)
    reason : why the enumeration is incomplete; '' if it is complete
    cells, parts : numbers of products of faces that were examined, and of connected parts of them that were solved
    """

    tasks: Array
    log_price: Array
    reason: str
    cells: int
    parts: int


def enumerated(system: EquilibriumSystem, options: EnumerationOptions = OPTIONS) -> Enumeration:
    """Solve all cells; the same allocation may occur repeatedly.

    The result is incomplete, with a `reason`, if there are too many cells or the time limit is exceeded.
    """
    (servers, resources), users = system.row.shape, len(system.weight)
    tasks, levels = [np.zeros((0, len(system.user)))], [np.zeros((0, servers, resources))]
    seen, parts, reason = 0, 0, ""
    try:
        game, order = arranged(system, options)
        for faces_of in cells(game):
            solved = solutions(game, faces_of)
            whole = np.zeros((len(solved.tasks), servers, users))
            level = np.full((len(whole), servers, resources), -np.inf)
            whole[:, order], level[:, order] = solved.tasks, solved.prices
            tasks.append(whole[:, system.server, system.user])
            levels.append(level)
            seen, parts = seen + len(faces_of), parts + solved.parts
    except TooLargeError as error:
        reason = str(error)
    return Enumeration(np.concatenate(tasks), np.concatenate(levels), reason, seen, parts)


def arranged(system: EquilibriumSystem, options: EnumerationOptions) -> tuple[Game, Index]:
    """Arrays of the game with servers in the order of increasing numbers of faces, and this order.

    Raises
    ------
    TooLargeError
        The game has too many subsets or faces, or the time limit is exceeded.
    """
    (servers, resources), users = system.row.shape, len(system.weight)
    names, shape, until = system.polytope.cluster.servers, (servers, users), clock.cpu() + options.seconds
    use, gain, size = np.zeros((*shape, resources)), np.full(shape, -np.inf), np.ones(shape)
    use[system.server, system.user] = system.use
    gain[system.server, system.user] = system.log_gain
    size[system.server, system.user] = system.gamma
    usable = gain > -np.inf
    many = 2.0 ** (usable.sum(axis=1) + resources)
    if many.sum() > options.subsets:
        raise TooLargeError(f"server {names[int(many.argmax())]!r} has too many users")
    host, support, rows = faces(use, usable, until)
    count = np.bincount(host, minlength=servers)
    if count.sum() > options.faces:
        raise TooLargeError(f"server {names[int(count.argmax())]!r} has {count.max()} faces")
    order = np.argsort(np.where(count, count, np.inf), kind="stable")[: np.count_nonzero(count)]
    known, gain = usable[order], gain[order]
    middle = np.nanmedian(np.where(known, gain - np.mean(gain, axis=0, where=known), np.nan), axis=1)
    place = np.zeros(servers, np.intp)
    place[order] = np.arange(len(order))
    of = np.argsort(place[host], kind="stable")
    found = use[order], gain, size[order], middle, place[host[of]], support[of], rows[of]
    return Game(system.alpha, *found, until), order


def jittered(system: EquilibriumSystem) -> EquilibriumSystem:
    """Copy with demands and gains of pairs perturbed by up to `JITTER`, relatively and equally in all runs."""
    rng, other = np.random.default_rng(0), copy(system)
    factor = np.exp(JITTER * rng.uniform(-1, 1, system.use.shape))
    other.use, other.per_task = system.use * factor, system.per_task * factor
    other.log_gain = system.log_gain + JITTER * rng.uniform(-1, 1, len(system.user))
    return other
