"""Bound on the welfare of any mechanism: a linear program over a grid of demands, and its dual as a proof.

With positive demands, sharing incentive, envy-freeness and strategy-proofness are linear in the tasks of all profiles
of reported demands, since the resources of x tasks of demand d' run `x min_r d'_r / d_r` tasks of demand d.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from ..certificates.rational import WORK, Dictionary, TooMuch, numbers
from ..mechanisms import Mechanism, one
from ..model import _validate, cluster_file, linear
from ..model.cluster import Cluster, expected
from ._base import Numbers, get, shown, tasks_per_task
from ._table import _SHORT

#: Version of the file format.
VERSION = 1
#: Largest ratio of two demands in a grid, each as a fraction of the pool; the smallest ratio is 1 / SPAN.
SPAN = 8
#: Largest number of constraints of a linear program, whose solution takes about a minute.
_ROWS = 300_000
#: Largest denominators to which multipliers are rounded in turn; the smallest proved bound is kept.
_DENOMINATORS = (100, 10_000, 10**6, 10**9, 10**12, 10**15)

#: Properties that are linear in tasks.
_LINEAR = ("SI", "EF", "SP")

#: Index of each user's type of demand.
Profile = tuple[int, ...]
#: Unknown of the program, the tasks of a user on a server in a profile: (profile, user, server).
Tasks = tuple[Profile, int, int]
#: Coefficients of a linear form by unknown.
Form = dict[Tasks, Fraction]
#: Key of the unknown z, the worst ratio of the welfare of a mechanism to the best fair welfare.
_RATIO: Tasks = ((), 0, 0)


class Row(NamedTuple):
    """Inequality `form . x <= most`, and its name: kind, profile, and two indices.

    The indices are those of a server and a resource (`capacity`), of two users (`envy-freeness`), of a user and its
    reported type (`strategy-proofness`), of a user twice (`sharing-incentive`), or 0 (`ratio`).
    """

    name: tuple[str, Profile, int, int]
    form: Form
    most: Fraction = Fraction(0)


def summed(terms: Iterable[tuple[Tasks, Any]]) -> Form:
    """Linear form with the sum of the coefficients of each unknown."""
    form = defaultdict[Tasks, Fraction](Fraction)
    for unknown, value in terms:
        form[unknown] += value
    return form


def of(form: Form, tasks: Mapping[Tasks, Fraction]) -> Fraction:
    """Value of a linear form at the unknowns `tasks`."""
    return sum((value * tasks[unknown] for unknown, value in form.items()), Fraction(0))


@dataclass(frozen=True, eq=False)
class Grid:
    """All profiles of users' types of demand on a cluster, and the linear inequalities of properties, in fractions.

    `types`, (types, resources), are the demands, and `properties` the full names of linear properties.

    If `anonymous`, users of equal weight and eligibility form groups, within which users that exchange their types also
    exchange their tasks. Only profiles with sorted types in every group are then considered.
    """

    cluster: Cluster
    properties: tuple[str, ...]
    types: Numbers
    anonymous: bool

    @cached_property
    def tasks_per_bundle(self) -> Numbers:
        """Tasks of one type that the resources of a task of another type can run, (types, types)."""
        return tasks_per_task(self.types, self.types)

    @cached_property
    def alone(self) -> Numbers:
        """Tasks of each type on each whole server, (types, servers)."""
        return tasks_per_task(self.types, numbers(self.cluster.capacity))

    @cached_property
    def groups(self) -> list[list[int]]:
        """Lists of indices of users that may exchange their types."""
        alike = defaultdict[Any, list[int]](list)
        for n, weight in enumerate(self.cluster.weight.tolist()):
            alike[weight, *self.cluster.eligible[n].tolist(), n * (not self.anonymous)].append(n)
        return list(alike.values())

    @cached_property
    def profiles(self) -> list[Profile]:
        """Profiles with sorted types within groups."""
        order = np.argsort(np.concatenate(self.groups)).tolist()
        each = [combinations_with_replacement(range(len(self.types)), len(group)) for group in self.groups]
        return [tuple(np.concatenate(some)[order].tolist()) for some in product(*each)]

    def on(self, profile: Profile, user: int) -> list[Tasks]:
        """Unknowns that are the tasks of a user in a profile, one for each eligible server.

        The unknowns belong to the profile with sorted types to which exchanges within groups lead.
        """
        taken, seat = list(profile), user
        for group in self.groups:
            kinds = sorted(profile[n] for n in group)
            for n, kind in zip(group, kinds, strict=True):
                taken[n] = kind
            if user in group:
                seat = group[kinds.index(profile[user])]
        return [(tuple(taken), seat, int(i)) for i in np.flatnonzero(self.cluster.eligible[user])]

    def most(self, unknown: Tasks) -> Fraction:
        """Upper bound on an unknown: the tasks that the user could run on the server alone."""
        profile, user, server = unknown
        return Fraction(self.alone[profile[user], server])

    def whole(self, profile: Profile, user: int) -> Fraction:
        """Tasks that a user of a profile could run alone on all its servers."""
        return sum(map(self.most, self.on(profile, user)), Fraction(0))

    def welfare(self, profile: Profile) -> Form:
        """Welfare of a profile: the sum over users of tasks relative to the tasks that the user could run alone."""
        users = range(len(profile))
        return summed((one, 1 / self.whole(profile, n)) for n in users for one in self.on(profile, n))

    def within(self, profile: Profile) -> Iterator[Row]:
        """Generate the inequalities of one profile: capacities, sharing incentive and envy-freeness."""
        weight: Any = numbers(self.cluster.weight)
        used = [(one, kind) for n, kind in enumerate(profile) for one in self.on(profile, n)]
        for (i, r), capacity in np.ndenumerate(self.cluster.capacity):
            unit = Fraction(float(capacity)) or 1
            form = summed((one, self.types[kind, r] / unit) for one, kind in used if one[-1] == i)
            yield Row(("capacity", profile, i, r), form, Fraction(bool(capacity)))
        for n, kind in enumerate(profile):
            own = [(one, -1) for one in self.on(profile, n)]
            if "sharing-incentive" in self.properties:
                part = weight[n] / weight.sum() * self.whole(profile, n)
                yield Row(("sharing-incentive", profile, n, n), summed(own), -part)
            for m, other in enumerate(profile):
                if "envy-freeness" in self.properties and m != n:
                    by = self.tasks_per_bundle[kind, other] * weight[n] / weight[m]
                    bundle = [(one, by) for one in self.on(profile, m) if self.cluster.eligible[n, one[-1]]]
                    yield Row(("envy-freeness", profile, n, m), summed(own + bundle))

    def rows(self, best: Mapping[Profile, Mapping[Tasks, Fraction]]) -> Iterator[Row]:
        """Generate all inequalities, with the ratio of welfare in the profiles of which `best` has the fair optimum."""
        for profile in self.profiles:
            yield from self.within(profile)
            if profile in best:
                form = self.welfare(profile)
                ratio = [(_RATIO, of(form, best[profile])), *((one, -by) for one, by in form.items())]
                yield Row(("ratio", profile, 0, 0), summed(ratio))
            for n, kind in enumerate(profile):
                for lie in range(len(self.types) if "strategy-proofness" in self.properties else 0):
                    told = self.on((*profile[:n], lie, *profile[n + 1 :]), n)
                    gain = [(one, self.tasks_per_bundle[kind, lie]) for one in told]
                    form = summed([*gain, *((one, -1) for one in self.on(profile, n))])
                    yield Row(("strategy-proofness", profile, n, lie), form)

    def best(self, profile: Profile) -> Mapping[Tasks, Fraction]:
        """Tasks of largest welfare with the properties that concern one profile, by the simplex method in integers.

        Sharing incentive is imposed by a penalty, which increases until the inequality holds: zero tasks are then a
        feasible initial vertex. All inequalities are verified at the result.

        Raises
        ------
        DataError
            There are too many users and servers for rational arithmetic.
        SolverError
            No penalty yields tasks that satisfy the inequalities.
        """
        gain = self.welfare(profile)
        place = {unknown: k for k, unknown in enumerate(gain)}
        rows = [
            ({place[one]: value / gain[one] for one, value in row.form.items()}, row.most)
            for row in self.within(profile)  # unknowns of the program are in units of welfare
        ]
        for penalty in (Fraction(10) ** power for power in range(3, 25, 3)):
            table, width = list[tuple[dict[int, Fraction], Fraction]](), len(gain)
            for form, most in rows:
                if most < 0:
                    table.append(({width: Fraction(1)}, penalty))
                    form, most = {k: value * penalty / -most for k, value in form.items()}, Fraction(0)
                    form[width] = Fraction(1)
                    width += 1
                table.append((form, most))
            program = Dictionary(table, width, WORK)
            try:
                program.maximise(*range(width))
            except TooMuch:
                raise DataError("too many users and servers for rational arithmetic; take fewer") from None
            found = program.values()
            tasks = {unknown: found.get(k, Fraction(0)) / gain[unknown] for unknown, k in place.items()}
            if min(tasks.values()) >= 0 and all(of(row.form, tasks) <= row.most for row in self.within(profile)):
                return tasks
        raise SolverError("no tasks with these properties are found")

    def bound(self, multipliers: Mapping[tuple[Any, ...], Fraction]) -> Fraction:
        r"""Upper bound on the ratio of welfare that the multipliers prove.

        .. math:: z \sum_p y_p W_p \le \sum_k y_k b_k + \sum_j u_j \max(0, g_j), \quad
            g = \sum_p y_p w_p - \sum_k y_k a_k

        with multipliers :math:`y_k \ge 0` of the inequalities :math:`a_k x \le b_k`, and :math:`y_p \ge 0` of the
        profiles p, in which welfare is :math:`w_p x` and the best fair welfare :math:`W_p`. The tasks
        :math:`x_j \le u_j` are bounded by the tasks that a user could run alone. The bound holds for any multipliers.

        Raises
        ------
        DataError
            A multiplier is negative, or belongs to no inequality, or no multiplier belongs to a ratio.
        """
        left = dict(multipliers)
        needed = [profile for profile in self.profiles if ("ratio", profile, 0, 0) in left]
        rows = [row for row in self.rows({one: self.best(one) for one in needed}) if row.name in left]
        by = [left.pop(row.name) for row in rows]
        if left or not needed or min(by) < 0:
            raise DataError(f"multipliers must be >= 0 and of inequalities, some of ratios; not {short(list(left))}")
        form = summed((one, -y * value) for row, y in zip(rows, by, strict=True) for one, value in row.form.items())
        total, whole = sum(y * row.most for row, y in zip(rows, by, strict=True)), -form.pop(_RATIO)
        return Fraction(total + sum(value * self.most(one) for one, value in form.items() if value > 0)) / whole


@dataclass(frozen=True, eq=False, repr=False)
class Possible:
    r"""Upper bound on the welfare of any mechanism with certain properties, with its proof.

    Attributes
    ----------
    grid : Grid
        Cluster, properties, and types of demand.
    bound : Fraction
        Upper bound on the fraction of the best fair welfare that a mechanism has in all profiles.
    multipliers : dict
        Dual variables of inequalities by `Row.name`, which prove `bound`.
    value : float
        Optimum of the linear program, as returned by the solver; NaN for a loaded bound.
    table : DataFrame
        An optimal rule, with a row per profile and user: `profile` (index), `user`, `demand`, tasks on each server, and
        `part`, the tasks as a fraction of those that the user could run alone; empty for a loaded bound.

    >>> import fairopt as fo
    >>> fo.properties.possible(fo.Cluster([[3, 1], [1, 3]], [[1, 1], [1, 1]]), types=7).replay()
    Fraction(42, 43)
    """

    grid: Grid
    bound: Fraction
    multipliers: dict[tuple[Any, ...], Fraction]
    value: float = float("nan")
    table: pd.DataFrame = field(default_factory=lambda: pd.DataFrame())

    def replay(self) -> Fraction:
        """Compute the bound again from the multipliers, in fractions and without the solver that found them.

        Raises
        ------
        DataError
            The multipliers do not prove the bound.
        """
        found = self.grid.bound(self.multipliers)
        if found > self.bound:
            raise DataError(f"the multipliers prove {shown(found)}, not {shown(self.bound)}")
        return found

    def reached(self, mechanism: Mechanism | str) -> float:
        """Smallest ratio of a mechanism's welfare to the best fair welfare, over the profiles of the grid."""
        ratios = list[float]()
        for profile in (grid := self.grid).profiles:
            cluster = grid.cluster.derived(demand=grid.types[list(profile)].astype(float))
            tasks = one(mechanism).solve(cluster).arrays.user_tasks.tolist()
            parts = (x / float(grid.whole(profile, n)) for n, x in enumerate(tasks))
            ratios.append(sum(parts) / float(of(grid.welfare(profile), grid.best(profile))))
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
        }

    @classmethod
    def of(cls, document: Any) -> Possible:
        """Construct a bound from plain data, which only `replay()` verifies; invalid data raise `DataError`."""
        stated = typed(document, _File)
        if stated.fairopt_possible != VERSION:
            raise DataError(f"its entry fairopt_possible is not {VERSION}, which is read here")
        with files.inside("cluster"):
            cluster = Cluster(**cluster_file.arguments(stated.cluster)[0])
        types = [[_fraction(value) for value in row] for row in stated.types]
        grid = _grid(cluster, stated.properties, types, stated.anonymous)
        return cls(grid, _fraction(stated.bound), {tuple(name): _fraction(y) for *name, y in stated.multipliers})

    def save(self, path: str | Path) -> None:
        """Write a file (JSON) that `load` reads; a failure raises `DataError`."""
        files.write(Path(path), f"{json.dumps(self.document(), indent=1)}\n", "bound")

    @classmethod
    def load(cls, path: str | Path) -> Possible:
        """Read a file; only `replay()` verifies the bound.

        Raises
        ------
        DataError
            The file cannot be read, or its content is invalid.
        """
        return files.read_json(path, "bound", cls.of)

    def __repr__(self) -> str:
        grid, at = self.grid, f"{self.bound} = " if 1 < self.bound.denominator < 10_000 else ""
        names = [_SHORT[name] for name in grid.properties]
        fair = ", ".join(name for name in names if name != "SP") or "no property"
        return (
            f"any mechanism with {', '.join(names) or 'no property'} reaches at most {at}{float(self.bound):.6g} "
            f"of the best welfare with {fair}\n"
            f"  {len(grid.cluster.users)} users with {len(grid.types)} types of demand each, "
            f"{len(grid.profiles)} profiles; proved in fractions by {len(self.multipliers)} multipliers"
        )


class _File(Struct, forbid_unknown_fields=True):
    """Format of the file of a bound."""

    fairopt_possible: int
    cluster: dict[str, Any]
    properties: list[str]
    types: list[list[str]]
    anonymous: bool
    bound: str
    multipliers: list[tuple[str, Profile, int, int, str]]


def possible(
    cluster: Cluster,
    properties: Sequence[str] | str = ("SI", "EF", "SP"),
    types: int | Sequence[Sequence[float]] = 7,
    *,
    anonymous: bool = True,
) -> Possible:
    r"""Bound the worst ratio, over profiles of demands, of any mechanism's welfare to the best fair welfare.

    .. math:: \max z \quad \text{s.t.} \quad \sum_n \frac{x_n(p)}{\gamma_n(p)} \ge z\, W_p \ \text{ for all profiles p}

    The tasks :math:`x(p)` of all profiles satisfy capacities and the properties, :math:`\gamma_n(p)` are the tasks that
    a user could run alone on all its servers, and :math:`W_p` is the largest welfare of tasks in p with the properties
    of single allocations. The dual variables prove the bound. It also holds for mechanisms that are defined for all
    demands, since the demands of the grid are among them.

    Parameters
    ----------
    cluster : Cluster
        Servers, weights and placement; the users' demands are ignored. Task limits are not supported.
    properties : sequence of str, or str
        Any of `sharing-incentive` (SI), `envy-freeness` (EF) and `strategy-proofness` (SP).
    types : int, or array (types, resources) of positive demands
        Number of values, from 1/8 to 8, of the ratio of each resource's demand to the first resource's demand, each as
        a fraction of the pool; or the demands themselves.
    anonymous : bool
        True: users of equal weight and placement exchange their tasks when they exchange their demands. The bound is
        the same, since a mechanism can be averaged over all exchanges, and the linear program is smaller.

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

    Source: defined here; docs/possible.md.

    >>> import fairopt as fo
    >>> fo.properties.possible(fo.Cluster([[3, 1], [1, 3]], [[1, 1], [1, 1]]), "SI, EF, SP", types=7)
    any mechanism with SI, EF, SP reaches at most 42/43 = 0.976744 of the best welfare with SI, EF
      2 users with 7 types of demand each, 28 profiles; proved in fractions by 7 multipliers
    """
    pooled = numbers(expected(cluster, "bounds on mechanisms").capacity).sum(axis=0).tolist()
    demands: Any = types
    if np.ndim(demands) == 0:
        count = _validate.whole(types, "types")
        ratios = [Fraction(SPAN**at).limit_denominator(1000) for at in np.linspace(-1, 1, count).tolist()]
        chosen = product(ratios if count > 1 else [Fraction(1)], repeat=len(pooled) - 1)
        demands = [[c * by for c, by in zip(pooled, (1, *some), strict=True)] for some in chosen]
    grid = _grid(cluster, items(properties) if isinstance(properties, str) else properties, demands, anonymous)
    rows = list(grid.rows({profile: grid.best(profile) for profile in grid.profiles}))
    place = {unknown: k for k, unknown in enumerate(dict.fromkeys(one for row in rows for one in row.form))}
    entries = [(float(by), place[unknown]) for row in rows for unknown, by in row.form.items()]
    values, columns = np.array(entries).T
    ends = np.cumsum([0, *(len(row.form) for row in rows)])
    matrix = sp.csr_array((values, columns.astype(int), ends), shape=(len(rows), len(place)))
    cost = np.array([-1.0 if unknown == _RATIO else 0.0 for unknown in place])
    found = linear.minimise(cost, matrix, np.array([float(row.most) for row in rows]))
    if found is None:
        raise SolverError("the linear program of all profiles is not solved; take fewer types")
    duals = [(row.name, Fraction(y)) for row, y in zip(rows, found.prices.tolist(), strict=True) if y]
    proofs = []
    for most in _DENOMINATORS:
        multipliers = {name: y for name, dual in duals if (y := dual.limit_denominator(most))}
        if any(name[0] == "ratio" for name in multipliers):
            proofs.append((grid.bound(multipliers), multipliers))
    tasks = dict(zip(place, found.x.tolist(), strict=True))
    return Possible(grid, *min(proofs, key=lambda proof: proof[0]), tasks[_RATIO], _table(grid, tasks))


def _grid(cluster: Cluster, properties: Sequence[str], types: Sequence[Sequence[Any]], anonymous: bool) -> Grid:
    """Construct a grid after validation of its data (`DataError`)."""
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
    rows = prod(comb(size + len(group) - 1, len(group)) for group in grid.groups)
    rows *= cluster.capacity.size + users * (users + size)
    if rows > _ROWS:
        raise DataError(f"{users} users of {size} types make {rows:,} constraints, more than {_ROWS:,}; take fewer")
    return grid


def _table(grid: Grid, x: Mapping[Tasks, float]) -> pd.DataFrame:
    """Table with a row per profile and user: demand, tasks on eligible servers, and the fraction of tasks run alone."""
    found = []
    for number, profile in enumerate(grid.profiles):
        for n, user in enumerate(grid.cluster.users):
            tasks = {grid.cluster.servers[one[-1]]: x[one] for one in grid.on(profile, n)}
            part = sum(tasks.values()) / float(grid.whole(profile, n))
            demand = ":".join(map(shown, grid.types[profile[n]]))
            found.append({"profile": number, "user": user, "demand": demand, **tasks, "part": part})
    return pd.DataFrame(found)


def _fraction(text: Any) -> Fraction:
    """Parse a fraction of a file; another text raises `DataError`."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise DataError(f"{short(text)} is no fraction such as '2/3'") from None
