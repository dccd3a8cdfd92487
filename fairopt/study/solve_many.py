"""`solve_many`: one mechanism on thousands of small clusters, solved in batches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import mechanisms
from ..base.errors import DataError, FairoptError
from ..base.libraries import pd
from ..base.names import short
from ..base.progress import tqdm
from ..core import maxmin
from ..core.choices import greatest
from ..core.engines.small import Kind, kind_of, small_enough
from ..core.game.index import negative_index
from ..core.solve import finite
from ..mechanisms import Mechanism
from ..model import _intake, _validate
from ..model._arrays import Array, Frozen, Mask, frozen
from ..model.cluster import Cluster
from ..model.problem import Problem


class Failure(NamedTuple):
    """Unsolved problem: its index, and the reason of the failure."""

    problem: int
    reason: str


@dataclass(frozen=True, eq=False, repr=False)
class Allocations(Frozen):
    """Allocations and certificates of many problems. Arrays are read-only; problems are the first axis.

    Problems of different shapes are padded with NaN to the largest shape; tasks of unsolved problems are NaN.

    Attributes
    ----------
    mechanism : str
        Label of the mechanism, such as `alphaPF-VDS(alpha=3)`.
    user_tasks : (problems, users)
        `x_n = sum_i x[n,i]`, in tasks.
    tasks : (problems, users, servers)
        `x[n,i]`, in tasks; one server, the pool, for mechanisms that pool.
    certificate : (problems,)
        Residual of `Mechanism.certify`: the larger of relative infeasibility and suboptimality. For an unsolved problem
        the residual of its best candidate, NaN without a candidate.
    failed : tuple of (problem, reason)
        The unsolved problems, in the order of their indices.
    fallback : (problems,) of bool
        Problems that were solved by `Mechanism.solve`.
    tol : float
        Bound on the certificates of all solved problems.
    users : tuple of tuples
        Names of the users of every problem.
    """

    mechanism: str
    user_tasks: Array
    tasks: Array
    certificate: Array
    failed: tuple[Failure, ...]
    fallback: Mask
    tol: float
    users: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        """Number of problems."""
        return len(self.certificate)

    def to_frame(self) -> pd.DataFrame:
        """Frame with a row per (problem, user): `tasks`, and the problem's `certificate`; NaN for unsolved problems.

        A problem with invalid data has no users and no rows.
        """
        counts = [len(names) for names in self.users]
        problem = np.repeat(np.arange(len(counts)), counts)
        place = np.concatenate([np.arange(count) for count in counts]) if counts else np.zeros(0, dtype=int)
        names = [name for each in self.users for name in each]
        index = pd.MultiIndex.from_arrays([problem, names], names=["problem", "user"])
        return pd.DataFrame(
            {"tasks": self.user_tasks[problem, place], "certificate": self.certificate[problem]}, index=index
        )

    def __repr__(self) -> str:
        total, users, servers = self.tasks.shape
        answered = total - len(self.failed)
        failed = {failure.problem for failure in self.failed}
        kept = np.array([p not in failed for p in range(total)], dtype=bool)
        worst = f"; largest certificate {self.certificate[kept].max():.1e}, tol {self.tol:g}" if answered else ""
        lines = [
            f"{self.mechanism}: {answered} of {total} problems answered, of up to {users} users and {servers} servers"
            f"{worst}"
        ]
        if self.fallback.any():
            lines.append(f"one by one: {int(self.fallback.sum())}")
        lines += [f"problem {failure.problem} failed: {failure.reason}" for failure in self.failed[:5]]
        if len(self.failed) > 5:
            lines.append(f"and {len(self.failed) - 5} more: see failed")
        return "\n".join(lines)


#: Number of problems per batch, which bounds memory and sets the granularity of the progress bar.
_CHUNK = 1000


def solve_many(
    mechanism: Mechanism | str,
    capacity: ArrayLike | Sequence[Cluster],
    demand: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    eligible: ArrayLike | None = None,
    max_tasks: ArrayLike | None = None,
    *,
    tol: float | None = None,
    fallback: bool = False,
    progress: bool = False,
) -> Allocations:
    r"""Solve one mechanism on many small clusters, in batches of equal shape.

    Problem p is the problem of `Mechanism.criterion` on cluster p; for alpha-fair mechanisms

    .. math:: \max_{x \in \mathcal{X}^{(p)}} \sum_n \phi_n^{(p)} f_\alpha(\sigma_n^{(p)} / \phi_n^{(p)}),
        \qquad p = 1, \dots, P

    Intended for thousands of clusters of a few users and servers, for which the overhead of `Mechanism.solve`
    dominates.

    Parameters
    ----------
    mechanism : Mechanism or str
        A mechanism, or its name with parameters, such as `"alpha-fair(alpha=3)"`.
    capacity : (problems, servers, resources)
        Capacities in resource units; or a list of clusters, of any shapes, in place of all arrays.
    demand : (problems, users, resources)
        Demands in resource units per task.
    weight, max_tasks : (problems, users), optional
    eligible : (problems, users, servers) of bool, optional
        Arguments of `Cluster`. An array without the axis of problems, or with length 1, applies to all problems.
    tol : float, optional
        Bound on every certificate. Default: the tolerance of the mechanism, usually 1e-6.
    fallback : bool
        Solve problems whose certificate misses `tol` by `Mechanism.solve`. Default: they are listed in `failed`.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Allocations
        `user_tasks` (problems, users), `tasks` (problems, users, servers), `certificate` (problems,), `failed` with
        the index of every unsolved problem and the reason, and `to_frame()`.

    Raises
    ------
    DataError
        The shapes of arrays are inconsistent, or the mechanism is unknown. An error in the data of one problem (NaN, a
        user without demand, a mechanism that is not defined there) is reported in `failed`; other problems are solved.

    Notes
    -----
    Batched kernels exist for criteria of the alpha-fair family without floors: lexicographic max-min over a pool, over
    servers and inside every server, alpha in [0, infinity) over a pool and over servers, alpha > 0 in the per-server
    game, and PS-DSF with positive demands and inactive task limits. Max-min problems that are degenerate up to
    rounding, other criteria (floors, FDS, bottleneck fairness, concave utilities), and problems above
    `core.engines.small.LARGEST` are solved one by one by `Mechanism.solve`.
    If solutions are not unique (PS-DSF, equilibria of the game, optima at alpha = 0, the split of a user's tasks over
    servers), the solution returned may differ from the solution of `Mechanism.solve`. Certificates equal those of
    `Mechanism.certify`, computed from tasks and prices.

    >>> import numpy as np, fairopt as fo
    >>> demand = np.array([[[1, 4], [3, 1]], [[1, 1], [1, 2]]])  # (problems, users, resources)
    >>> fo.solve_many("drf", [[[9, 18]]], demand).user_tasks.round(3).tolist()
    [[3.0, 2.0], [4.5, 4.5]]
    """
    chosen = mechanisms.one(mechanism)
    tol = chosen.default_tol if tol is None else _validate.tolerance(tol)
    given = _given(capacity, demand, weight, eligible, max_tasks)
    found = _Found(chosen, given, tol, fallback)
    with tqdm(total=len(given), disable=None if progress else True, unit="problem", leave=False) as bar:
        for first in range(0, len(given), _CHUNK):
            numbers = range(first, min(first + _CHUNK, len(given)))
            found.add(numbers)
            bar.update(len(numbers))
    return found.allocations()


class _Found:
    """Results of `solve_many`, filled batch by batch."""

    def __init__(self, mechanism: Mechanism, given: list[Any] | Stacked, tol: float, fallback: bool) -> None:
        self.mechanism, self.given, self.tol, self.fallback = mechanism, given, tol, fallback
        self.tasks: list[Array | None] = [None] * len(given)
        self.users: list[tuple[str, ...]] = [()] * len(given)
        self.certificate = np.full(len(given), np.nan)
        self.fell_back = np.zeros(len(given), dtype=bool)
        self.failed: list[Failure] = []

    def add(self, numbers: Iterable[int]) -> None:
        """Solve problems of given indices: in stacks of one kind and shape, or one by one if there is no kernel.

        Invalid problems are recorded in `failed`.
        """
        stacks: defaultdict[tuple[Kind, tuple[int, ...]], list[tuple[int, Problem]]] = defaultdict(list)
        single = []
        for p in numbers:
            try:
                cluster = self.given[p]
                if not isinstance(cluster, Cluster):
                    what = f"{short(cluster)}, of type {type(cluster).__name__}"
                    raise DataError(f"it is {what}; make a fairopt.Cluster of it")
                self.users[p] = cluster.users
                self.mechanism.check(cluster)
                seen, _ = self.mechanism.prepare(cluster)
                rule = self.mechanism.criterion(seen) if self.mechanism.judged_by_criterion else None
            except DataError as error:
                self.failed.append(Failure(p, str(error)))
                continue
            kind = None if rule is None else kind_of(rule)
            if (
                rule is None
                or kind is None
                or seen.rated
                or not small_enough(kind, seen.shape[0] * seen.shape[1], rule.alpha)
            ):
                single.append(p)
            else:
                stacks[kind, seen.shape].append((p, Problem(seen, rule)))
        for (kind, _), stack in stacks.items():
            self.mechanism.check_statement(stack[0][1])  # cached: it runs once per mechanism
            single += self._stacked(kind, stack)
        for p in single:
            self._alone(p)

    def _stacked(self, kind: Kind, stack: list[tuple[int, Problem]]) -> list[int]:
        """Solve a stack of problems, and return the indices of problems that remain to be solved one by one."""
        (tasks, certificates, unstable), alone = together(kind, [problem for _, problem in stack], self.tol), []
        for k, (p, _) in enumerate(stack):
            certificate = float(certificates[k])
            if unstable[k] or (not certificate <= self.tol and (self.fallback or kind in ("psdsf", "leximin"))):
                alone.append(p)
                continue
            if certificate <= self.tol:
                self.tasks[p] = tasks[k]
            else:
                missed = f"its certificate {certificate:.1e} misses tol={self.tol:g}; relax tol, or"
                text = missed if np.isfinite(certificate) else "the kernel for stacks finds no answer;"
                self.failed.append(Failure(p, f"{text} hand it to solve with fallback=True"))
            self.certificate[p] = certificate if np.isfinite(certificate) else np.nan
        return alone

    def _alone(self, p: int) -> None:
        """Solve one problem by `Mechanism.solve`; record an error in `failed`."""
        self.fell_back[p] = True
        try:
            found = self.mechanism.solve(self.given[p], self.tol)
        except FairoptError as error:
            self.failed.append(Failure(p, f"{type(error).__name__}: {error}"))
            return
        self.tasks[p], self.certificate[p] = found.tasks, found.certificate.residual

    def allocations(self) -> Allocations:
        """Assemble the results as arrays."""
        shapes = [tasks.shape for tasks in self.tasks if tasks is not None]
        users = max([1, *map(len, self.users), *(shape[0] for shape in shapes)])
        tasks = np.full((len(self.tasks), users, max([1, *(shape[1] for shape in shapes)])), np.nan)
        user_tasks = np.full(tasks.shape[:2], np.nan)
        for p, own in enumerate(self.tasks):
            if own is not None:
                tasks[p, : own.shape[0], : own.shape[1]] = own
                user_tasks[p, : own.shape[0]] = own.sum(axis=1)
        return Allocations(
            str(self.mechanism),
            user_tasks,
            tasks,
            self.certificate,
            tuple(sorted(self.failed)),
            self.fell_back,
            self.tol,
            tuple(self.users),
        )


#: Fraction of the tolerance at which kernels terminate; their final step converges quadratically.
_AIM = 0.1


def together(kind: Kind, problems: list[Problem], tol: float) -> tuple[Array, Array, Mask]:
    """Solve a stack of problems of one kind and shape.

    Returns tasks (problems, users, servers); certificates (problems,), infinite where the kernel fails; and a mask
    (problems,) of unstable equilibria, in place of which `Mechanism.solve` searches for other equilibria.
    """
    stable = np.zeros(len(problems), dtype=bool)
    if kind == "psdsf":
        return *greatest(problems), stable
    if kind in ("global", "game"):
        found = finite(problems, _AIM * tol, _AIM * tol)
        unstable = negative_index(problems, found) & (found.certificate <= tol) if kind == "game" else stable
        return found.tasks, found.certificate, unstable
    kernels = {"leximin": maxmin.leximin, "per_server": maxmin.alone, "efficient": maxmin.largest_sum}
    return *kernels[kind](problems)[:2], stable


#: Stacked arguments of a cluster, with their axes after the axis of problems.
_AXES = {
    "capacity": ("servers", "resources"),
    "demand": ("users", "resources"),
    "weight": ("users",),
    "eligible": ("users", "servers"),
    "max_tasks": ("users",),
}
#: Closed ranges of the values of arguments; () stands for all positive finite numbers.
_RANGES: dict[str, tuple[float, ...]] = {"capacity": (0.0,), "demand": (0.0,), "weight": (), "max_tasks": (0.0, np.inf)}


class Stacked:
    """Sequence of clusters, from arrays with a first axis of problems, which may be missing or of length 1.

    Shapes, types and values are validated for all problems at once; a cluster with invalid values is constructed by
    `Cluster`, whose error names the invalid values.
    """

    def __init__(self, **given: Any) -> None:
        arrays = {name: _stacked(name, given[name]) for name in _AXES if given[name] is not None}
        for name in ("capacity", "demand"):
            if name not in arrays:
                raise DataError(f"{name} is missing; give stacked arrays (problems, ...), or a list of clusters")
        counts = {name: len(array) for name, array in arrays.items() if len(array) != 1}
        self.count = next(iter(counts.values()), 1)
        if len({*counts.values()}) > 1 or not self.count:
            raise DataError(f"problems differ in number: {_listed(counts)}; give one for each, or one for all")
        users = arrays["demand"].shape[1]
        arrays = {name: np.repeat(one, users, axis=1) if one.shape[1:] == (1,) else one for name, one in arrays.items()}
        # `Cluster` checks that shapes, without the axis of problems, are consistent.
        self.first = Cluster(**{name: np.ones(array.shape[1:]) for name, array in arrays.items()})
        self.arrays: dict[str, NDArray[Any]] = {
            name: np.broadcast_to(frozen(array), (self.count, *getattr(self.first, name).shape))
            for name, array in arrays.items()
        }

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> Cluster:
        rows = {name: array[number] for name, array in self.arrays.items()}
        if not self.sound[number]:
            return Cluster(**rows)
        if "eligible" in rows:
            rows["eligible"] = frozen(rows["eligible"] == 1)
        return self.first.derived(**rows)

    @cached_property
    def sound(self) -> Mask:
        """Mask (problems,) of problems with valid values only."""
        given = self.arrays
        with np.errstate(invalid="ignore"):
            good = [_validate.inside(given[name], *ends) for name, ends in _RANGES.items() if name in given]
        good.append(np.asarray(given["demand"].any(axis=2)))
        if "eligible" in given:
            good.append((given["eligible"] == 0) | (given["eligible"] == 1))
        return np.asarray(np.all([each.reshape(self.count, -1).all(axis=1) for each in good], axis=0))


def _given(capacity: Any, demand: Any, weight: Any, eligible: Any, max_tasks: Any) -> list[Any] | Stacked:
    """Check the arguments of `solve_many` (`DataError`), and return them as a sequence of clusters."""
    if demand is not None or isinstance(capacity, np.ndarray):
        return Stacked(capacity=capacity, demand=demand, weight=weight, eligible=eligible, max_tasks=max_tasks)
    if any(value is not None for value in (weight, eligible, max_tasks)):
        raise DataError("a list of clusters comes alone: weight, eligible and max_tasks are theirs")
    if isinstance(capacity, Cluster | str) or not isinstance(capacity, Iterable):
        raise DataError(f"problems are {short(capacity)}; give a list of clusters, or stacked capacity and demand")
    clusters = list(capacity)
    if not clusters:
        raise DataError("the list of clusters is empty; give at least one")
    if not any(isinstance(item, Cluster) for item in clusters):
        raise DataError("demand is missing; give stacked arrays (problems, ...), or a list of clusters")
    return clusters


def _stacked(name: str, values: Any) -> NDArray[Any]:
    """Convert an argument to an array with a first axis of problems, of length 1 if the argument has no such axis.

    Other numbers of axes raise `DataError`.
    """
    axes = len(_AXES[name])
    array = _intake.plain(values, name, truths=name == "eligible")
    if array.ndim == 0 and name in ("weight", "max_tasks"):
        array = array[None]
    if array.ndim == axes:
        array = array[None]
    if array.ndim != axes + 1:
        raise DataError(f"{name} must have axes ({', '.join(('problems', *_AXES[name]))}); got shape {array.shape}")
    return array


def _listed(sizes: dict[str, int]) -> str:
    return ", ".join(f"{name} {size}" for name, size in sizes.items())
