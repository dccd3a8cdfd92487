"""What any mechanism can reach: a linear program over a grid of demands, and its dual as a proof.

With positive demands sharing incentive, envy-freeness and strategy-proofness are linear in the tasks of all profiles of
reported demands, since the bundle of `x` tasks of demand d' runs `x min_r d'_r / d_r` tasks of demand d.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, product
from math import comb, prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from ..base import files
from ..base.errors import DataError, SolverError
from ..base.libraries import pd, sp
from ..base.names import items, short
from ..base.typed import typed
from ..certificates.rational import WORK, Dictionary, numbers
from ..mechanisms import Mechanism, one
from ..model import _validate, cluster_file, linear
from ..model.cluster import Cluster, expected
from ._base import Numbers, get, shown, tasks_per_task
from ._table import _SHORT

#: Version of the file format.
VERSION = 1
#: Largest ratio of demands in a grid, in parts of the pool; the smallest is its inverse.
SPAN = 8
#: Largest number of constraints of a linear program, which takes about a minute.
_ROWS = 300_000
#: Denominators to which multipliers are rounded; the first that proves the smallest bound is kept.
_DENOMINATORS = (100, 10_000, 10**6, 10**9, 10**12, 10**15)

#: Properties that are linear in tasks.
_LINEAR = ("SI", "EF", "SP")

#: Number of each user's type.
Profile = tuple[int, ...]
#: Tasks of a user on a server in a profile.
Tasks = tuple[Profile, int, int]
#: The unknown that is the ratio of welfare.
_RATIO: Tasks = ((), 0, 0)


class Row(NamedTuple):
    """The inequality `entries . x <= most`, with its name: property, profile, user, and other user, lie or resource."""

    name: tuple[str, Profile, int, int]
    entries: Mapping[Tasks, Fraction]
    most: Fraction = Fraction(0)


@dataclass(frozen=True, eq=False)
class Grid:
    """All profiles of users' types on a cluster, and the linear inequalities of properties, in fractions.

    With `anonymous`, users of equal weight and eligibility have equal tasks wherever they exchange their types, so that
    only profiles with sorted types within such groups are considered.
    """

    cluster: Cluster
    properties: tuple[str, ...]
    types: Numbers
    anonymous: bool

    @cached_property
    def worth(self) -> Numbers:
        """Tasks of each type that a task of another one's bundle runs, (types, types)."""
        return tasks_per_task(self.types, self.types)

    @cached_property
    def alone(self) -> Numbers:
        """Tasks of each type on each whole server, (types, servers)."""
        return tasks_per_task(self.types, numbers(self.cluster.capacity))

    @cached_property
    def alike(self) -> list[int]:
        """The first user of the group of each user."""
        if not self.anonymous:
            return list(range(len(self.cluster.users)))
        data = [(w, *on) for w, on in zip(self.cluster.weight.tolist(), self.cluster.eligible.tolist(), strict=True)]
        return [data.index(each) for each in data]

    @cached_property
    def profiles(self) -> list[Profile]:
        """Profiles with sorted types within groups."""
        groups = [np.flatnonzero(np.equal(self.alike, first)) for first in sorted(set(self.alike))]
        order = np.argsort(np.concatenate(groups))
        each = [combinations_with_replacement(range(len(self.types)), len(group)) for group in groups]
        return [tuple(np.concatenate(some)[order].tolist()) for some in product(*each)]

    def seat(self, profile: Profile, user: int) -> tuple[Profile, int]:
        """The sorted profile of a profile, and the first user in it that is in the place of a user."""
        taken = list(profile)
        for first in set(self.alike):
            group = [n for n, each in enumerate(self.alike) if each == first]
            for n, kind in zip(group, sorted(profile[n] for n in group), strict=True):
                taken[n] = kind
        return tuple(taken), next(
            n for n, kind in enumerate(taken) if (kind, self.alike[n]) == (profile[user], self.alike[user])
        )

    def on(self, profile: Profile, user: int) -> list[Tasks]:
        """Unknowns of a user of a profile, one for each of its servers."""
        where = self.seat(profile, user)
        return [(*where, int(i)) for i in np.flatnonzero(self.cluster.eligible[user])]

    def most(self, unknown: Tasks) -> Fraction:
        """Tasks of an unknown at most: those that the user could run on the server alone."""
        profile, user, server = unknown
        return Fraction(self.alone[profile[user], server])

    def welfare(self, profile: Profile) -> dict[Tasks, Fraction]:
        """Coefficients of the welfare: the sum of all users' tasks, each as a part of those that it could run alone."""
        sum_of = defaultdict[Tasks, Fraction](Fraction)
        for n in range(len(profile)):
            unknowns = self.on(profile, n)
            whole = sum(map(self.most, unknowns), Fraction(0))
            for unknown in unknowns:
                sum_of[unknown] += 1 / whole
        return sum_of

    def within(self, profile: Profile) -> Iterator[Row]:
        """Capacities of a profile, and its properties but for strategy-proofness."""
        weight: Any = numbers(self.cluster.weight)
        for i, r in np.ndindex(*self.cluster.capacity.shape):
            entries, most = defaultdict[Tasks, Fraction](Fraction), Fraction(float(self.cluster.capacity[i, r]))
            for n, kind in enumerate(profile):
                if self.cluster.eligible[n, i]:
                    entries[(*self.seat(profile, n), i)] += self.types[kind, r] / (most or 1)
            yield Row(("capacity", profile, i, r), entries, Fraction(most > 0))
        users = sorted({self.seat(profile, n)[1] for n in range(len(profile))})
        for n in users:
            own = self.on(profile, n)
            if "sharing-incentive" in self.properties:
                part = weight[n] / weight.sum() * sum(map(self.most, own), Fraction(0))
                yield Row(("sharing-incentive", profile, n, n), dict.fromkeys(own, Fraction(-1)), -part)
            for m in users:
                if "envy-freeness" in self.properties and m != n:
                    by = self.worth[profile[n], profile[m]] * weight[n] / weight[m]
                    others = {one: by for one in self.on(profile, m) if self.cluster.eligible[n, one[-1]]}
                    yield Row(("envy-freeness", profile, n, m), others | dict.fromkeys(own, Fraction(-1)))

    def lies(self, profile: Profile) -> Iterator[Row]:
        """Strategy-proofness where the types of a profile are the true ones."""
        for n in sorted({self.seat(profile, n)[1] for n in range(len(profile))}):
            own = dict.fromkeys(self.on(profile, n), Fraction(-1))
            for lie in set(range(len(self.types))) - {profile[n]}:
                told = (*profile[:n], lie, *profile[n + 1 :])
                entries = dict.fromkeys(self.on(told, n), self.worth[profile[n], lie])
                yield Row(("strategy-proofness", profile, n, lie), entries | own)

    def rows(self) -> Iterator[Row]:
        """All inequalities but for those of the ratio."""
        for profile in self.profiles:
            yield from self.within(profile)
            if "strategy-proofness" in self.properties:
                yield from self.lies(profile)

    def best(self, profile: Profile) -> dict[Tasks, Fraction]:
        """Tasks of largest welfare with the properties that concern one profile, by the simplex method in integers.

        Sharing incentive is a penalty that grows until it holds, so that no tasks at all are a vertex to begin at.
        """
        gain, rows, penalty = self.welfare(profile), list(self.within(profile)), Fraction(1)
        place = {unknown: k for k, unknown in enumerate(gain)}
        while True:
            table, width = list[tuple[dict[int, Fraction], Fraction]](), len(gain)
            penalty *= 1000
            for row in rows:  # an unknown of the program is its welfare
                entries = {place[one]: value / gain[one] for one, value in row.entries.items()}
                if row.most < 0:
                    scaled = {k: value * penalty / -row.most for k, value in entries.items()}
                    table += [({width: Fraction(1)}, penalty), ({width: Fraction(1)} | scaled, Fraction(0))]
                    width += 1
                else:
                    table.append((entries, row.most))
            program = Dictionary(table, width, WORK)
            program.maximise(*range(width))
            found = program.values()
            tasks = {unknown: found.get(k, Fraction(0)) / gain[unknown] for unknown, k in place.items()}
            if not self.broken(profile, tasks):
                return tasks

    def broken(self, profile: Profile, tasks: Mapping[Tasks, Fraction]) -> str:
        """Name of an inequality of a profile that tasks violate; '' if there is none."""
        if any(value < 0 for value in tasks.values()):
            return "no negative tasks"
        over = (row for row in self.within(profile) if of(row.entries, tasks) > row.most)
        return next((row.name[0] for row in over), "")

    def bound(self, multipliers: Mapping[tuple[Any, ...], Fraction], best: Mapping[Profile, Any]) -> Fraction:
        r"""Largest ratio of welfare that multipliers leave possible.

        .. math:: z \sum_p y_p W_p \le \sum_k y_k b_k + \sum_j u_j \max(0, g_j), \quad
            g = \sum_p y_p w_p - \sum_k y_k a_k

        with multipliers y >= 0 of the rows :math:`a_k x \le b_k` and of the profiles p, of welfare :math:`w_p x` and
        of fair tasks of welfare :math:`W_p`, and tasks :math:`x_j \le u_j` alone. It holds for any multipliers.

        Raises
        ------
        DataError
            A multiplier is negative or of no inequality, or tasks of a profile are not as they must be.
        """
        left, total, whole = dict(multipliers), Fraction(0), Fraction(0)
        gain = defaultdict[Tasks, Fraction](Fraction)
        if any(value < 0 for value in left.values()):
            raise DataError("a multiplier is negative")
        for profile in self.profiles:
            value = left.pop(("ratio", profile, 0, 0), Fraction(0))
            if value:
                tasks = best.get(profile, {})
                if fault := self.broken(profile, tasks):
                    raise DataError(f"tasks of profile {profile} violate {fault}")
                welfare = self.welfare(profile)
                whole += value * of(welfare, tasks)
                for unknown, by in welfare.items():
                    gain[unknown] += value * by
        for row in self.rows():
            value = left.pop(row.name, Fraction(0))
            if value:
                total += value * row.most
                for unknown, by in row.entries.items():
                    gain[unknown] -= value * by
        if left or not whole:
            odd = f"no inequality has the name {short(next(iter(left)))}" if left else "no profile has a multiplier"
            raise DataError(odd)
        return (total + sum(by * self.most(unknown) for unknown, by in gain.items() if by > 0)) / whole


def of(entries: Mapping[Tasks, Fraction], tasks: Mapping[Tasks, Fraction]) -> Fraction:
    """Value of a linear form."""
    return sum((value * tasks.get(unknown, 0) for unknown, value in entries.items()), Fraction(0))


@dataclass(frozen=True, eq=False, repr=False)
class Possible:
    r"""Upper bound on what any mechanism with certain properties reaches, with its proof.

    Attributes
    ----------
    grid : Grid
        Cluster, properties, and types of demand.
    bound : Fraction
        No mechanism has more than this fraction of the best fair welfare in all profiles.
    multipliers : dict
        Dual variables of inequalities, from which `bound` follows.
    best : dict
        Fair tasks of each profile whose welfare has a multiplier.
    value : float
        Optimum of the linear program, as the solver returns it; NaN for a loaded bound.
    table : DataFrame
        Tasks of each user and server by profile under an optimal rule; empty for a loaded bound.

    >>> import fairopt as fo
    >>> fo.properties.possible(fo.Cluster([[3, 1], [1, 3]], [[1, 1], [1, 1]]), types=7).replay()
    Fraction(42, 43)
    """

    grid: Grid
    bound: Fraction
    multipliers: dict[tuple[Any, ...], Fraction]
    best: dict[Profile, dict[Tasks, Fraction]]
    value: float = float("nan")
    table: pd.DataFrame = field(default_factory=lambda: pd.DataFrame())

    def replay(self) -> Fraction:
        """Compute the bound again from multipliers and fair tasks, in fractions and without any solver.

        Raises
        ------
        DataError
            The multipliers do not prove the bound.
        """
        found = self.grid.bound(self.multipliers, self.best)
        if found > self.bound:
            raise DataError(f"the multipliers prove {shown(found)}, not {shown(self.bound)}")
        return found

    def reached(self, mechanism: Mechanism | str) -> float:
        """Smallest ratio of a mechanism's welfare to the best fair one, over the profiles of the grid."""
        grid, ratios, chosen = self.grid, list[float](), one(mechanism)
        for profile in grid.profiles:
            cluster = grid.cluster.derived(demand=grid.types[list(profile)].astype(float))
            tasks = chosen.solve(cluster).arrays.user_tasks
            alone = (grid.alone[list(profile)] * grid.cluster.eligible).sum(axis=1).astype(float)
            ratios.append(float((tasks / alone).sum() / of(grid.welfare(profile), grid.best(profile))))
        return min(ratios)

    def document(self) -> files.Table:
        """Plain data of the file, with fractions as texts."""
        return {
            "fairopt_possible": VERSION,
            "cluster": cluster_file.document(self.grid.cluster),
            "properties": list(self.grid.properties),
            "types": [list(map(str, row)) for row in self.grid.types.tolist()],
            "anonymous": self.grid.anonymous,
            "bound": str(self.bound),
            "multipliers": [[*name, str(value)] for name, value in self.multipliers.items()],
            "best": [[p, n, i, str(x)] for tasks in self.best.values() for (p, n, i), x in tasks.items() if x],
        }

    @classmethod
    def of(cls, document: Any) -> Possible:
        """Construct from plain data; the bound is verified only by `replay()`."""
        stated = typed(document, _File)
        if stated.fairopt_possible != VERSION:
            raise DataError(f"its entry fairopt_possible is not {VERSION}, which is read here")
        best = defaultdict[Profile, dict[Tasks, Fraction]](dict)
        for profile, user, server, tasks in stated.best:
            best[profile][profile, user, server] = _fraction(tasks)
        with files.inside("cluster"):
            cluster = Cluster(**cluster_file.arguments(stated.cluster)[0])
        types = [[_fraction(value) for value in row] for row in stated.types]
        grid = _grid(cluster, stated.properties, types, stated.anonymous)
        return cls(grid, _fraction(stated.bound), {tuple(name): _fraction(y) for *name, y in stated.multipliers}, best)

    def save(self, path: str | Path) -> None:
        """Write a file (JSON) that `replay` verifies."""
        files.write(Path(path), f"{json.dumps(self.document(), indent=1)}\n", "bound")

    @classmethod
    def load(cls, path: str | Path) -> Possible:
        """Read a file; the bound is verified only by `replay()`."""
        return files.read_json(path, "bound", cls.of)

    def __repr__(self) -> str:
        grid, at = self.grid, f"{self.bound} = " if self.bound.denominator < 10_000 else ""
        names = [_SHORT[name] for name in grid.properties]
        fair = ", ".join(name for name in names if name != "SP") or "no property"
        return (
            f"any mechanism with {', '.join(names) or 'no property'} reaches at most {at}{float(self.bound):.6g} "
            f"of the best welfare with {fair}\n"
            f"  {len(grid.cluster.users)} users with {len(grid.types)} types of demand each, "
            f"{len(grid.profiles)} profiles; proved in fractions by {len(self.multipliers)} multipliers"
        )


class _File(Struct, forbid_unknown_fields=True):
    """The file of a bound."""

    fairopt_possible: int
    cluster: dict[str, Any]
    properties: list[str]
    types: list[list[str]]
    anonymous: bool
    bound: str
    multipliers: list[tuple[str, Profile, int, int, str]]
    best: list[tuple[Profile, int, int, str]]


def possible(
    cluster: Cluster,
    properties: Sequence[str] | str = ("SI", "EF", "SP"),
    types: int | Sequence[Sequence[float]] = 7,
    *,
    anonymous: bool = True,
) -> Possible:
    r"""Bound the worst ratio, over profiles of demands, of any mechanism's welfare to the best fair welfare.

    .. math:: \max z \quad \text{s.t.} \quad \sum_n \frac{x_n(p)}{\gamma_n(p)} \ge z\, W_p \ \text{ for all profiles p}

    The tasks :math:`x(p)` of all profiles satisfy capacities and the properties, :math:`\gamma_n` are a user's tasks
    alone on all its servers, and :math:`W_p` is the largest welfare of tasks of p with the properties of single
    allocations. The dual variables prove the bound, which holds for mechanisms on all demands as well, since these
    contain the grid.

    Parameters
    ----------
    cluster : Cluster
        Servers, weights and placement; the users' own demands are ignored. Task limits are not supported.
    properties : sequence of str, or str
        Of `sharing-incentive` (SI), `envy-freeness` (EF) and `strategy-proofness` (SP).
    types : int, or array (types, resources) of positive demands
        Number of ratios of each resource's demand to that of the first, in parts of the pool, from 1/8 to 8; or the
        demands themselves.
    anonymous : bool
        Users of equal weight and placement have equal tasks when they exchange demands, and so equal tasks with equal
        demands. That changes no bound, as a mechanism may be averaged over all exchanges, but the program is smaller.

    Returns
    -------
    Possible
        The bound with its proof, and the table of an optimal rule.

    Raises
    ------
    DataError
        Unknown properties, task limits, demands that are not positive, or a grid that is too large.
    SolverError
        The linear program is not solved.

    >>> import fairopt as fo
    >>> fo.properties.possible(fo.Cluster([[3, 1], [1, 3]], [[1, 1], [1, 1]]), "SI, EF, SP", types=7)
    any mechanism with SI, EF, SP reaches at most 42/43 = 0.976744 of the best welfare with SI, EF
      2 users with 7 types of demand each, 28 profiles; proved in fractions by 7 multipliers
    """
    pooled = numbers(expected(cluster).capacity).sum(axis=0).tolist()
    demands: Any = types
    if np.ndim(demands) == 0:
        count = _validate.whole(types, "types")
        ratios = [Fraction(SPAN**at).limit_denominator(1000) for at in np.linspace(-1, 1, count).tolist()]
        chosen = product(ratios if count > 1 else [Fraction(1)], repeat=len(pooled) - 1)
        demands = [[c * by for c, by in zip(pooled, (1, *some), strict=True)] for some in chosen]
    grid = _grid(cluster, items(properties) if isinstance(properties, str) else properties, demands, anonymous)
    rows = list(grid.rows())
    best = {profile: grid.best(profile) for profile in grid.profiles}
    for profile, tasks in best.items():  # the ratio is the last unknown of the linear program
        gain = grid.welfare(profile)
        rows.append(Row(("ratio", profile, 0, 0), {one: -by for one, by in gain.items()} | {_RATIO: of(gain, tasks)}))
    place = {unknown: k for k, unknown in enumerate(dict.fromkeys(one for row in rows for one in row.entries))}
    ends = np.cumsum([0, *(len(row.entries) for row in rows)])
    entries = [(float(by), place[unknown]) for row in rows for unknown, by in row.entries.items()]
    values, columns = np.array(entries).T
    matrix = sp.csr_array((values, columns.astype(int), ends), shape=(len(rows), len(place)))
    cost = np.zeros(len(place))
    cost[place[_RATIO]] = -1
    found = linear.minimise(cost, matrix, np.array([float(row.most) for row in rows]))
    if found is None:
        raise SolverError("the linear program of all profiles is not solved; take fewer types")
    proof = _proved(grid, rows, found.prices, best)
    return Possible(grid, *proof, float(found.x[place[_RATIO]]), _table(grid, place, found.x))


def _grid(cluster: Cluster, properties: Sequence[str], types: Sequence[Sequence[Any]], anonymous: bool) -> Grid:
    """Validate the data of a grid."""
    long = {abbreviation: name for name, abbreviation in _SHORT.items()}
    names = tuple(dict.fromkeys(long.get(name) or get(name).name for name in properties))
    if odd := [name for name in names if _SHORT.get(name) not in _LINEAR]:
        raise DataError(f"{odd[0]} is not linear in tasks, as {', '.join(_LINEAR)} are")
    demands = np.array([[Fraction(value) for value in row] for row in types], dtype=object)
    if demands.ndim != 2 or demands.shape[1] != len(cluster.resources) or not (demands > 0).all():
        raise DataError("types must be rows of positive demands of every resource, or their number")
    if np.isfinite(cluster.max_tasks).any():
        raise DataError("with task limits envy-freeness is not linear; drop them with cluster.replace(max_tasks=None)")
    grid = Grid(cluster, names, demands, anonymous)
    if not (grid.alone.min(axis=0) * cluster.eligible).any(axis=1).all():
        raise DataError("a user can run no task of these types on any server")
    size, users = len(demands), len(cluster.users)
    groups = np.unique(grid.alike, return_counts=True)[1].tolist()
    rows = prod(comb(size + n - 1, n) for n in groups) * (cluster.capacity.size + users * (users + size))
    if rows > _ROWS:
        raise DataError(f"{users} users of {size} types make {rows:,} constraints, more than {_ROWS:,}; take fewer")
    return grid


def _proved(
    grid: Grid, rows: Sequence[Row], prices: Any, best: Mapping[Profile, dict[Tasks, Fraction]]
) -> tuple[Fraction, dict[tuple[Any, ...], Fraction], dict[Profile, dict[Tasks, Fraction]]]:
    """Smallest bound that rounded dual variables prove, these, and the fair tasks that it needs."""
    proofs = []
    for most in _DENOMINATORS:
        rounded = {row.name: Fraction(y).limit_denominator(most) for row, y in zip(rows, prices.tolist(), strict=True)}
        multipliers = {name: y for name, y in rounded.items() if y}
        needed = {name[1]: best[name[1]] for name in multipliers if name[0] == "ratio"}
        if needed:
            proofs.append((grid.bound(multipliers, needed), multipliers, needed))
    return min(proofs, key=lambda proof: proof[0])


def _table(grid: Grid, place: Mapping[Any, int], x: Any) -> pd.DataFrame:
    """Tasks by profile and user: demand, tasks on every server, and the user's part of its tasks alone."""
    found = []
    for number, profile in enumerate(grid.profiles):
        for n, user in enumerate(grid.cluster.users):
            tasks = {grid.cluster.servers[one[-1]]: x[place[one]] for one in grid.on(profile, n)}
            part = sum(tasks.values()) / float(sum(map(grid.most, grid.on(profile, n))))
            demand = ":".join(map(shown, grid.types[profile[n]]))
            found.append({"profile": number, "user": user, "demand": demand, **tasks, "part": part})
    return pd.DataFrame(found)


def _fraction(text: Any) -> Fraction:
    """Parse a fraction of a file."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise DataError(f"{short(text)} is no fraction such as '2/3'") from None
