"""`equilibria`: all equilibria of alphaPF-VDS at one alpha, each certified."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from functools import partial
from typing import NamedTuple

import numpy as np

from ... import _clock
from ...certificates import ByCriterion, certify_problem
from ...errors import DataError
from ...model import _validate
from ...model._arrays import Array, Index
from ...model.cluster import Cluster, expected
from ...model.criterion import Criterion, criterion, virtual_share_per_task
from ...model.merging import Merging, merge
from ...model.problem import Problem
from ...model.split import Split
from ...result.allocation import Allocation, Stats, idle
from .. import engine
from ..dynamics.distributed import generator_of
from ..model.equilibrium_system import EquilibriumSystem
from ..responses.rounds import Sweeps
from .cells import Game, TooLargeError, cells, faces
from .listing import Equilibria
from .options import OPTIONS, EnumerationOptions
from .parts import solutions
from .verified import Collected, Verified

#: The tolerance that the engine is asked for, and the change of a round of best responses that ends them.
_FINE = 1e-10
#: By what part data are changed that ties make degenerate.
JITTER = 1e-6
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
    """All equilibria of alphaPF-VDS that can be found: on small clusters all there are.

    Servers and users that are alike are merged first. Then, within `options.seconds`, every product of faces of
    servers' polytopes is gone through (`docs/algorithms/equilibria.md`). Where that takes longer, the engine's
    answer and best responses from random starts are what is found, and `complete` is False.

    Parameters
    ----------
    cluster : where the game is played
    alpha : in (0, infinity)
    tol : what every certificate reaches; equilibria that miss it are not in the list, and `tried` counts them
    rng : seed or generator of random starts, beyond enumeration
    options : what may be spent

    Returns
    -------
    Equilibria
        a sequence of allocations, with `indices`, `radii`, `complete`, `tried`, `to_frame()`, `preferences()` and
        `pareto()`. Allocations with the same tasks of users are one equilibrium, however tasks are split over servers.

    Raises
    ------
    DataError
        alpha is 0 or infinite, or another argument is wrong.

    With task counts that bind equilibria are continua (a generalised equilibrium): those in which no count binds are
    enumerated, others only looked for, and `complete` is False.
    """
    alpha, tol, rng = _validate.alpha(alpha), _validate.tolerance(tol), generator_of(rng)
    if alpha in _OTHER_ALPHA:
        raise DataError(_OTHER_ALPHA[alpha])
    watch = _clock.Watch()
    merging = merge(expected(cluster))
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
    """All of them, but of a continuum (index 0, one active set) only two that are far apart."""
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
    """Outcome of the enumeration, in words."""
    if made.reason:
        return f"not finished: {made.reason}"
    text = f"finished: {made.cells} products of faces, {made.parts} parts solved"
    text += f"; indices sum to {sum(one.index for one in collected.found)}"
    if any(one.index == 0 for one in collected.found):
        text += "; index 0: degenerate, or part of a continuum"
    return f"{text}; task counts can bind, where equilibria are continua" if bounded else text


def _of_engine(problem: Problem, system: EquilibriumSystem) -> Iterator[tuple[Array, Array]]:
    """Tasks (pairs,) and log level prices of the engine's answer, where enumeration does not finish."""
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
    """The same near where best responses from random tasks end, servers in turn."""
    sweeps, users = Sweeps(system), np.bincount(system.server)
    for _ in range(options.starts):
        part = rng.exponential(size=len(system.user)) / users[system.server]
        state = sweeps.start(problem.polytope.inside(part) * system.gamma)
        for _ in range(options.rounds):
            if sweeps.gauss_seidel(state) <= _FINE:
                break
        yield state.tasks.copy(), np.where(system.row, state.log_price, -np.inf)


def _allocation(problem: Problem, merging: Merging, one: Verified, tol: float, watch: _clock.Watch) -> Allocation:
    """An equilibrium of the merged cluster as a certified allocation of the original one."""
    begun, alpha = _clock.now(), problem.criterion.alpha
    split = Split.of(merging, one.tasks)
    certificate, proof = certify_problem(problem, split, merging.split_prices(one.log_prices))
    stats = Stats(one.by, "none", "found", 0, 0.0, 0.0, watch.seconds, _clock.now() - begun, {}, watch.loops)
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
    """Equilibria found, and how.

    Attributes
    ----------
    tasks, log_price : (solutions, pairs) and, in levels, (solutions, servers, resources)
    reason : why not all cells were gone through; empty if they were
    cells, parts : products of faces of all servers that were looked at, and connected parts of them that were solved
    """

    tasks: Array
    log_price: Array
    reason: str
    cells: int
    parts: int


def enumerated(system: EquilibriumSystem, options: EnumerationOptions = OPTIONS) -> Enumeration:
    """Solutions of all cells; the same allocation may stand in several. None if there are too many cells."""
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
    """The game, servers with few faces first, and its servers in their order.

    Raises
    ------
    TooLargeError
        It has too many faces.
    """
    (servers, resources), users = system.row.shape, len(system.weight)
    names, shape, until = system.polytope.cluster.servers, (servers, users), _clock.cpu() + options.seconds
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
    """The same game with demands of pairs and gains changed by up to `JITTER`, relatively, always in the same way."""
    rng, other = np.random.default_rng(0), copy(system)
    factor = np.exp(JITTER * rng.uniform(-1, 1, system.use.shape))
    other.use, other.per_task = system.use * factor, system.per_task * factor
    other.log_gain = system.log_gain + JITTER * rng.uniform(-1, 1, len(system.user))
    return other
