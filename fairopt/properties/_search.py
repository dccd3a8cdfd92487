"""`search`: random search for a counterexample, which is then reduced and verified."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.random import Generator

from .. import mechanisms
from ..base.errors import DataError
from ..base.progress import tqdm
from ..mechanisms import Mechanism
from ..mechanisms._claim import CONDITIONS
from ..model import _validate
from ..model._arrays import Array
from ..model.cluster import Cluster
from ._base import Deviation, Property, get
from ._tasks import Instance, accepted, cases, clusters, instances, seen, speaks_of
from ._verify import CERTIFIED, MARGIN, ROUTES, violated
from .witness import Witness, recorded

Shape = tuple[int, int, int]
#: Capacities and demands.
Amounts = tuple[Array, Array]
Family = Callable[[Generator, Shape], Amounts]


def _whole(rng: Generator, low: int, high: int, shape: Shape) -> Amounts:
    """Capacities and demands that are integers from `low` to `high`."""
    users, servers, resources = shape
    capacity, demand = (rng.integers(low, high + 1, (rows, resources)).astype(float) for rows in (servers, users))
    return capacity, demand


def _uniform(rng: Generator, shape: Shape) -> Amounts:
    """Capacities and demands that are integers from 1 to 6, 12 or 20."""
    return _whole(rng, 1, int(rng.choice([6, 12, 20])), shape)


def _identical_servers(rng: Generator, shape: Shape) -> Amounts:
    """Servers that are identical, or differ by one unit of one capacity."""
    capacity, demand = _uniform(rng, shape)
    capacity[:] = capacity[0]
    capacity[-1, 0] += rng.integers(2)
    return capacity, demand


def _near_ties(rng: Generator, shape: Shape) -> Amounts:
    """Capacities and demands that are integers from 1 to 3, which produce ties."""
    return _whole(rng, 1, 3, shape)


def _two_users(rng: Generator, shape: Shape) -> Amounts:
    return _uniform(rng, (2, *shape[1:]))


def _heterogeneous(rng: Generator, shape: Shape) -> Amounts:
    """Capacities and demands that are powers of two from 1 to 64."""
    capacity, demand = _whole(rng, 0, 6, shape)
    return 2**capacity, 2**demand


def _zeros(rng: Generator, shape: Shape) -> Amounts:
    """Demands of which about half are zero, and a few zero capacities."""
    capacity, demand = _near_ties(rng, shape) if rng.random() < 0.5 else _uniform(rng, shape)
    demand = demand * (rng.random(demand.shape) < 0.5)
    demand[np.arange(len(demand)), rng.integers(shape[2], size=len(demand))] += 1
    return capacity * (rng.random(capacity.shape) < 0.95), demand


FAMILIES: tuple[Family, ...] = (_uniform, _identical_servers, _near_ties, _two_users, _heterogeneous, _zeros)


def draw(rng: Generator, prop: Property, conditions: Sequence[str] = ()) -> Cluster:
    """Draw a cluster of 2 to 5 users, 1 to 3 servers and 1 to 3 resources, or as many as the property requires.

    In most clusters weights are 1, and there are no placement constraints or task limits. There are rates of work, and
    limits of all users, if the property or a condition requires them; other conditions need not be satisfied.
    """
    users = int(rng.integers(2, 6))
    servers = prop.servers or int(rng.choice([1, 2, 2, 3]))
    resources = prop.resources or int(rng.choice([1, 2, 2, 3]))
    capacity, demand = FAMILIES[int(rng.integers(len(FAMILIES)))](rng, (users, servers, resources))
    users = len(demand)
    weight = rng.integers(1, 4, users) if rng.random() < 0.3 else None
    eligible = rng.random((users, servers)) < 0.7 if rng.random() < 0.3 else None
    counts = np.where(rng.random(users) < 0.5, rng.integers(1, 11, users), np.inf) if rng.random() < 0.2 else None
    rate = None
    if prop.of_rates or {"rates", "own time"} & {*conditions}:
        rate = rng.integers(1, int(rng.choice([3, 6, 12])) + 1, (users, len(capacity)))
    if "own time" in conditions or (prop.of_rates and rng.random() < 0.5):
        counts = rng.integers(1, 4, users)
    return Cluster(capacity, demand, weight, eligible, counts, rate=rate)


@dataclass(frozen=True)
class SearchOptions:
    """Parameters of `search`.

    >>> import fairopt as fo
    >>> fo.properties.SearchOptions(batch=50).elite
    8
    """

    #: Number of trials per batch.
    batch: int = 250
    #: Number of trials with the largest violations that are retained for random perturbation.
    elite: int = 8
    #: Fraction of the instances of a batch that are perturbations of the elite.
    climbing: float = 0.3
    #: Number of batches of perturbations after the first violation, to find a larger one before its instance is reduced
    #: in size.
    further: int = 2
    #: Fraction of the violation that a reduced instance must have.
    kept: float = 0.5


def search(
    mechanism: Mechanism | str,
    property: str | Property,
    trials: int = 2000,
    rng: Generator | int | None = None,
    *,
    conditions: Sequence[str] = (),
    options: SearchOptions = SearchOptions(),
    progress: bool = False,
) -> Witness | None:
    """Search for a cluster on which a mechanism violates a property.

    Clusters of small integers are drawn from families (identical servers, near ties, two users, powers of two, zeros)
    and solved in batches. Clusters with the largest violations are perturbed at random. After the first violation two
    more batches of perturbations are tried. The violation that is verified most rigorously is then simplified step by
    step while at least half of it remains. Verification is in exact arithmetic for lexicographic max-min and the
    largest sum of shares, by rigorous enclosures at finite alpha, and otherwise by solutions certified to 1e-9. The
    simplified instance is verified at least as rigorously as the original instance.

    Parameters
    ----------
    mechanism : Mechanism or str
        For example `"alphapf-vds(alpha=2)"`.
    property : Property or str
        For example `"envy-freeness"`.
    trials : int
        Number of clusters, or of pairs of a cluster and a changed cluster.
    rng : Generator or int, optional
        Generator or seed.
    conditions : sequence of str
        Conditions on clusters, such as `["positive demands", "no task counts"]`.
    options : SearchOptions
        Sizes of batches, and parameters of perturbation and reduction.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Witness or None
        The verified violation; None if none was found, which does not prove that the property holds.

    Raises
    ------
    DataError
        The mechanism, property or a condition is unknown, no cluster drawn satisfies the conditions or could be solved,
        or `trials` is below 1.

    >>> import fairopt as fo
    >>> found = fo.properties.search("task-maxmin", "sharing-incentive", 50, rng=1)
    >>> found.exact, found.violation[0] > 0
    (True, True)
    """
    return hunt(mechanism, property, trials, rng, conditions=conditions, options=options, progress=progress).witness


def hunt(
    mechanism: Mechanism | str,
    property: str | Property,
    trials: int,
    rng: Generator | int | None = None,
    *,
    conditions: Sequence[str] = (),
    options: SearchOptions = SearchOptions(),
    progress: bool = False,
) -> Hunt:
    """Run `search`, and return the final state with its statistics; arguments and errors are those of `search`."""
    trials = _validate.whole(trials, "trials")
    chosen, prop = mechanisms.one(mechanism), get(property)
    if why := prop.unfit(chosen):
        raise DataError(f"{prop.name} is not defined for {chosen}: {why}")
    going = Hunt(chosen, prop, known_conditions(conditions), options, np.random.default_rng(rng))
    with tqdm(total=trials, disable=None if progress else True, unit="trial", leave=False) as bar:
        while going.trials < trials:
            before = going.trials
            going.batch(min(options.batch, trials - before), options.climbing)
            bar.update(going.trials - before)
            if going.found():
                break
    if not going.answered:
        raise DataError(f"{chosen} answers none of {trials} clusters to 1e-8; solve one of them to see why")
    return going


def known_conditions(names: Sequence[str]) -> Sequence[str]:
    """Return the names of conditions on clusters if all of them are known, and raise `DataError` otherwise."""
    if isinstance(names, str) or (unknown := [name for name in names if name not in CONDITIONS]):
        bad = names if isinstance(names, str) else unknown[0]
        raise DataError(f"conditions are {bad!r}; give a list of some of: {', '.join(CONDITIONS)}")
    return names


#: Violation, and the instance in which it occurs.
Lossy = tuple[float, Instance]
_loss = itemgetter(0)
#: Index of the method of verification in `ROUTES`, the violation, and its instance.
Best = tuple[int, float, Instance | None]


@dataclass(eq=False)
class Hunt:
    """State of a search: numbers of trials and solved trials, the elite by decreasing violation, and the witness.

    `doubted` is the largest violation that could not be verified: at degenerate ties a solution of slightly perturbed
    data may have a large violation.
    """

    mechanism: Mechanism
    prop: Property
    conditions: Sequence[str]
    options: SearchOptions
    rng: Generator
    elite: list[Lossy] = field(default_factory=list)
    trials: int = 0
    answered: int = 0
    doubted: float = 0.0
    witness: Witness | None = None

    def batch(self, size: int, climbing: float) -> None:
        """Solve `size` instances, of which up to the fraction `climbing` are perturbations of the elite."""
        tried = self._near([one for _, one in self.elite], int(climbing * size))
        tried += self._drawn(size - len(tried))
        self.trials += size
        found = [each for each in self.losses(tried) if each[0] > -1]
        self.answered += len(found)
        self.elite = sorted(self.elite + found, key=_loss, reverse=True)[: self.options.elite]

    def losses(self, some: Sequence[Instance]) -> list[Lossy]:
        """Largest violation of each instance; -1 for instances that were not solved."""
        found = zip(cases(self.mechanism, some, 1e-8), some, strict=True)
        return [(-1.0 if case is None else float(self.prop.find(case).violation), one) for case, one in found]

    def found(self) -> bool:
        """Try further perturbations of the elite, verify its violations, and reduce the best to a witness.

        Returns True on success, and False if no violation is large enough or verified; violations that cannot be
        verified are removed from the elite.
        """
        if not self.elite or self.elite[0][0] <= MARGIN:
            return False
        for _ in range(self.options.further):
            self.batch(self.options.batch, 1.0)
        route, loss, instance = self._best()
        if instance is not None:
            least = max(self.options.kept * loss, 2 * MARGIN)
            small = shrunk(instance, partial(self._survive, least, route))
            self.witness = recorded(self.mechanism, self.prop.name, renumbered(small))
            return True
        self.doubted = max(self.doubted, self.elite[0][0])
        self.elite = [each for each in self.elite if each[0] <= MARGIN]
        return False

    def _best(self) -> Best:
        """Most rigorously verified violation of the elite.

        If a violation is certified but not proved, typically because of ties, 100 perturbations of its instance and 100
        new instances are tried; of each 100, the 16 with the largest violations are verified.
        """
        best = self._first(self.elite, (len(ROUTES), 0.0, None))
        if best[2] is not None and ROUTES[best[0]] == CERTIFIED:
            for others in (self._near([best[2]], 100), self._drawn(100)):
                best = self._first(sorted(self.losses(others), key=_loss, reverse=True)[:16], best)
        return best

    def _first(self, some: list[Lossy], best: Best) -> Best:
        """First proved violation, or else the most rigorously verified violation, `best` included."""
        for loss, instance in some:
            if loss > MARGIN and (found := violated(self.mechanism, self.prop.name, instance)):
                route = ROUTES.index(found.route)
                best = (route, loss, instance) if route < best[0] else best
                if found.route != CERTIFIED:
                    break
        return best

    def _survive(self, least: float, route: int, some: Sequence[Instance]) -> list[bool]:
        """Mask of the first instance with violation `least` or more, by a method at least as rigorous as `route`."""
        for loss, instance in self.losses([one for one in some if self._about(one)]):
            found = violated(self.mechanism, self.prop.name, instance) if loss >= least else None
            if found is not None and ROUTES.index(found.route) <= route:
                return [one is instance for one in some]
        return [False] * len(some)

    def _about(self, instance: Instance) -> bool:
        """True if the property, the mechanism and the conditions apply to an instance."""
        some = clusters(instance)
        return (
            (len(some) > 1) == self.prop.compares
            and speaks_of(self.prop, instance)
            and all(CONDITIONS[name](one) for one in some for name in self.conditions)
            and all(accepted(self.mechanism, one) for one in some)
        )

    def _near(self, some: Sequence[Instance], size: int) -> list[Instance]:
        """Random perturbations of instances, except perturbations to which the property does not apply."""
        made = (moved(some[int(self.rng.integers(len(some)))], self.rng) for _ in range(size if some else 0))
        return [one for one in made if self._about(one)]

    def _drawn(self, size: int) -> list[Instance]:
        """At most `size` new random instances; `DataError` if no cluster drawn satisfies the conditions."""
        made: list[Instance] = []
        for _ in range(40 * size):  # few random clusters may satisfy the conditions
            if len(made) >= size:
                break
            try:
                cluster = seen(self.mechanism, draw(self.rng, self.prop, self.conditions))
            except DataError:
                continue
            if self.prop.undefined(cluster):
                continue
            made += filter(self._about, instances(self.prop, cluster, self.rng, 4))
        if size and not made:
            raise DataError(f"no cluster drawn meets the conditions of {self.prop.name} for {self.mechanism}")
        return made[:size]


#: Index of an entry of an argument of a cluster.
Place = tuple[int, ...]
#: Number of simplifications per batch.
_TOGETHER = 24
_AXES = ("users", "servers", "resources")
_ARGUMENTS = ("capacity", "demand", "weight", "eligible", "max_tasks", "rate")


def _like(cluster: Cluster, deviation: Deviation) -> Cluster:
    """Restrict a cluster to the users, servers and resources of the changed cluster, in which a user may be missing."""
    return cluster.select(**{axis: getattr(deviation.cluster, axis) for axis in _AXES})


def with_entry(instance: Instance, argument: str, place: Place, value: float, reported: bool = False) -> Instance:
    """Replace an entry of an argument of the clusters of an instance.

    An entry that agrees in the two clusters is replaced in both; otherwise it is replaced in the changed cluster if
    `reported`, and in the original cluster if not. If a user has left, the original cluster determines the changed one.

    Raises
    ------
    DataError
        The value is not valid in a cluster.
    """
    cluster, deviation = instance
    if deviation is None or deviation.cluster.shape != cluster.shape:
        cluster = _entry(cluster, argument, place, value)
        return cluster, deviation and Deviation(_like(cluster, deviation), deviation.users)
    changed = deviation.cluster
    agree = getattr(changed, argument)[place] == getattr(cluster, argument)[place]
    if agree or not reported:
        cluster = _entry(cluster, argument, place, value)
    if agree or reported:
        changed = _entry(changed, argument, place, value)
    return cluster, Deviation(changed, deviation.users)


def disagreements(instance: Instance) -> list[tuple[str, Place]]:
    """Arguments and indices of entries in which a changed cluster of equal shape differs; otherwise an empty list."""
    cluster, *changed = clusters(instance)
    return [
        (argument, tuple(place))
        for other in changed
        for argument in _ARGUMENTS
        if other.shape == cluster.shape
        for place in np.argwhere(getattr(cluster, argument) != getattr(other, argument)).tolist()
    ]


def without(instance: Instance, axis: str, name: str) -> Instance:
    """Remove a user, a server or a resource.

    Raises
    ------
    DataError
        There is no other user, server or resource, or a user demands no other resource.
    """
    cluster, deviation = instance

    def fewer(one: Cluster) -> Cluster:
        return one.select(**{axis: [other for other in getattr(one, axis) if other != name]})

    if deviation is None:
        return fewer(cluster), None
    left = deviation.users if axis != "users" else tuple(user for user in deviation.users if user != name)
    return fewer(cluster), Deviation(fewer(deviation.cluster), left)


def moved(instance: Instance, rng: Generator) -> Instance:
    """Perturb one or two entries at random; a perturbation with an invalid result is omitted."""
    with suppress(DataError):
        for _ in range(int(rng.integers(1, 3))):
            instance = _moved(instance, rng)
    return instance


def _moved(instance: Instance, rng: Generator) -> Instance:
    differing = disagreements(instance)
    if differing and rng.random() < 0.4:
        argument, place = differing[int(rng.integers(len(differing)))]
    else:
        often = ["rate", "rate"] if instance[0].rated else []
        argument = str(rng.choice(["demand", "demand", "capacity", "capacity", "weight", *often]))
        table = getattr(instance[0], argument)
        place = tuple(int(rng.integers(size)) for size in table.shape)
    old = float(getattr(instance[0], argument)[place])
    if argument in ("eligible", "max_tasks") or not np.isfinite(old):
        return instance
    reported = bool(rng.random() < 0.5)
    value = float(rng.choice([old + 1, old - 1, 2 * old, np.ceil(old / 2), old + rng.integers(-3, 4)]))
    return with_entry(instance, argument, place, max(value, 0.0), reported)


def _entry(cluster: Cluster, argument: str, place: Place, value: float) -> Cluster:
    table = np.array(getattr(cluster, argument))
    table[place] = value
    good = value > 0 if argument in ("weight", "rate") else value >= 0
    if not good or (argument == "demand" and not table[place[0]].any()):
        raise DataError(f"{argument} {value:g} makes no cluster")
    return cluster.derived(**{argument: None if argument == "rate" and (table == 1).all() else table})


def renumbered(instance: Instance) -> Instance:
    """Rename users to `user1`, `user2`, ..., and servers and resources likewise."""
    cluster, deviation = instance
    new = {axis: {name: f"{axis[:-1]}{k}" for k, name in enumerate(getattr(cluster, axis), 1)} for axis in _AXES}

    def renamed(one: Cluster) -> Cluster:
        return one.derived(**{axis: tuple(new[axis][name] for name in getattr(one, axis)) for axis in _AXES})

    if deviation is None:
        return renamed(cluster), None
    users = tuple(new["users"][user] for user in deviation.users)
    return renamed(cluster), Deviation(renamed(deviation.cluster), users)


def shrunk(instance: Instance, survives: Callable[[Sequence[Instance]], list[bool]]) -> Instance:
    """Simplify an instance repeatedly until no simplification `survives`.

    Users are removed first, then servers, resources, weights, task limits, placement constraints and rates. Then
    misreported entries are replaced by the truth, and finally entries are reduced towards 0. Every simplification
    reduces the size of the instance, which ensures termination.
    """
    candidates = _simpler(instance)
    while some := [*islice(candidates, _TOGETHER)]:
        kept = survives(some)
        if any(kept):
            instance = some[kept.index(True)]
            candidates = _simpler(instance)
    return instance


def _simpler(instance: Instance) -> Iterator[Instance]:
    """Generate simplifications, the largest first; the last have smaller entries in one or both clusters."""
    cluster, differ = instance[0], disagreements(instance)
    for axis in _AXES:
        for name in getattr(cluster, axis):
            yield from _made(without, instance, axis, name)
    for argument, plain in (("weight", 1.0), ("max_tasks", np.inf), ("eligible", 1.0), ("rate", 1.0)):
        for at in np.argwhere(getattr(cluster, argument) != plain).tolist():
            yield from _made(with_entry, instance, argument, tuple(at), plain)
    for argument, place in differ:
        yield from _made(with_entry, instance, argument, place, float(getattr(cluster, argument)[place]), True)
    for argument in ("demand", "capacity", "weight", "max_tasks", *(("rate",) if cluster.rated else ())):
        for place in np.ndindex(getattr(cluster, argument).shape):
            for reported, one in enumerate(clusters(instance)[: 1 + ((argument, place) in differ)]):
                old = float(getattr(one, argument)[place])
                for value in sorted({0.0, 1.0, old // 2, old - 1}) if np.isfinite(old) else ():
                    if 0 <= value < old:
                        yield from _made(with_entry, instance, argument, place, value, bool(reported))


def _made(make: Callable[..., Instance], *given: Any) -> Iterator[Instance]:
    """Yield the simplified instance, or nothing if it is invalid."""
    with suppress(DataError):
        yield make(*given)
