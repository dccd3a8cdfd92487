"""`search`: a counterexample, made small and verified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from .. import mechanisms
from .._progress import tqdm
from ..errors import DataError
from ..mechanisms import Mechanism
from ..mechanisms._claim import CONDITIONS
from ..model import _validate
from ..model.cluster import Cluster
from ._base import Property, get
from ._shrink import moved, renumbered, shrunk
from ._tasks import Instance, accepted, cases, clusters, instances, seen, speaks_of
from ._verify import CERTIFIED, MARGIN, ROUTES, violated
from .witness import Witness, recorded


class Scope:
    """Instances that a property, a mechanism and some conditions (`CONDITIONS`) speak of."""

    def __init__(self, mechanism: Mechanism, prop: Property, conditions: Sequence[str]) -> None:
        if isinstance(conditions, str) or (unknown := [name for name in conditions if name not in CONDITIONS]):
            bad = conditions if isinstance(conditions, str) else unknown[0]
            raise DataError(f"conditions are {bad!r}; give a list of some of: {', '.join(CONDITIONS)}")
        self.mechanism, self.prop, self.conditions = mechanism, prop, tuple(conditions)

    def __contains__(self, instance: Instance) -> bool:
        some = clusters(instance)
        return (
            (len(some) > 1) == self.prop.compares
            and speaks_of(self.prop, instance)
            and all(CONDITIONS[name](one) for one in some for name in self.conditions)
            and all(accepted(self.mechanism, one) for one in some)
        )


Array = NDArray[np.float64]
Shape = tuple[int, int, int]
Family = Callable[[np.random.Generator, Shape], tuple[Array, Array]]


def _whole(rng: np.random.Generator, low: int, high: int, shape: tuple[int, int]) -> Array:
    return rng.integers(low, high + 1, shape).astype(float)


def _uniform(rng: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
    """Whole numbers up to 6, 12 or 20."""
    users, servers, resources = shape
    top = int(rng.choice([6, 12, 20]))
    return _whole(rng, 1, top, (servers, resources)), _whole(rng, 1, top, (users, resources))


def _identical_servers(rng: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
    """All servers alike, but for one unit."""
    capacity, demand = _uniform(rng, shape)
    capacity[:] = capacity[0]
    capacity[-1, 0] += rng.integers(2)
    return capacity, demand


def _near_ties(rng: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
    """Numbers 1 to 3."""
    users, servers, resources = shape
    return _whole(rng, 1, 3, (servers, resources)), _whole(rng, 1, 3, (users, resources))


def _two_users(rng: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
    return _uniform(rng, (2, *shape[1:]))


def _heterogeneous(rng: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
    """Powers of two up to 64."""
    users, servers, resources = shape
    return 2 ** _whole(rng, 0, 6, (servers, resources)), 2 ** _whole(rng, 0, 6, (users, resources))


def _zeros(rng: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
    """Demands that are 0 as often as not, and some capacities."""
    capacity, demand = _near_ties(rng, shape) if rng.random() < 0.5 else _uniform(rng, shape)
    demand = demand * (rng.random(demand.shape) < 0.5)
    demand[np.arange(len(demand)), rng.integers(shape[2], size=len(demand))] += 1
    return capacity * (rng.random(capacity.shape) < 0.95), demand


FAMILIES: tuple[Family, ...] = (_uniform, _identical_servers, _near_ties, _two_users, _heterogeneous, _zeros)


def draw(rng: np.random.Generator, prop: Property) -> Cluster:
    """A cluster of 2 to 5 users, 1 to 3 servers and 1 to 3 resources, or of as many as the property is about.

    Weights are 1 of most clusters, else 1 to 3; most have neither placement constraints nor task counts.
    """
    users = int(rng.integers(2, 6))
    servers = prop.servers or int(rng.choice([1, 2, 2, 3]))
    resources = prop.resources or int(rng.choice([1, 2, 2, 3]))
    capacity, demand = FAMILIES[int(rng.integers(len(FAMILIES)))](rng, (users, servers, resources))
    users = len(demand)
    weight = rng.integers(1, 4, users) if rng.random() < 0.3 else None
    eligible = rng.random((users, servers)) < 0.7 if rng.random() < 0.3 else None
    counts = np.where(rng.random(users) < 0.5, rng.integers(1, 11, users), np.inf) if rng.random() < 0.2 else None
    return Cluster(capacity, demand, weight, eligible, counts)


@dataclass(frozen=True)
class Hunted:
    """The end of a search: a witness or none, after so many trials.

    `doubted` is the largest loss that trials showed and nobody could verify: at degenerate ties answers that are right
    for data a rounding error away lose much.
    """

    witness: Witness | None
    trials: int
    doubted: float


@dataclass(frozen=True)
class SearchOptions:
    """Numbers of a search: clusters drawn, and climbed from."""

    #: Trials that are solved together.
    batch: int = 250
    #: So many trials with the largest losses are kept, to be changed at random.
    elite: int = 8
    #: The part of a batch that comes from the elite.
    climbing: float = 0.3
    #: Batches of climbing alone after the first violation, to start shrinking from a larger one.
    further: int = 2
    #: Shrinking keeps this part of the violation.
    kept: float = 0.5


def search(
    mechanism: Mechanism | str,
    property: str | Property,
    trials: int = 2000,
    rng: np.random.Generator | int | None = None,
    *,
    conditions: Sequence[str] = (),
    options: SearchOptions = SearchOptions(),
    progress: bool = False,
) -> Witness | None:
    """Look for a cluster on which a mechanism violates a property.

    Clusters of small whole numbers are drawn in families (identical servers, near ties, two users, powers of two,
    zeros), solved together, and those of the largest losses changed at random. The first violation is made smaller,
    step by step, while half of it stays, and verified: in fractions where the mechanism is lexicographic max-min or the
    largest sum of shares, between proved bounds at finite alpha, else from answers certified to 1e-9. What is made
    smaller is verified in no worse a way than what was found.

    Parameters
    ----------
    mechanism : a mechanism, or its name, such as `"alphapf-vds(alpha=2)"`
    property : the name of a property, such as `"envy-freeness"`, or one
    trials : int
        Clusters, or pairs of a cluster and a changed one, to try.
    rng : numpy.random.Generator or a seed, optional
    conditions : names of conditions on clusters, such as `["positive demands", "no task counts"]`
    options : SearchOptions
    progress : bool
        Show a progress bar.

    Returns
    -------
    Witness or None
        None: nothing was found. That proves nothing.

    Raises
    ------
    DataError
        There is no such mechanism, property or condition, no cluster meets all conditions, or `trials` is below 1.
    """
    return hunt(mechanism, property, trials, rng, conditions=conditions, options=options, progress=progress).witness


def hunt(
    mechanism: Mechanism | str,
    property: str | Property,
    trials: int,
    rng: np.random.Generator | int | None = None,
    *,
    conditions: Sequence[str] = (),
    options: SearchOptions = SearchOptions(),
    progress: bool = False,
) -> Hunted:
    """`search`, with what it took; arguments and errors are the same."""
    trials = _validate.whole(trials, "trials")
    chosen, prop = mechanisms.one(mechanism), get(property)
    if why := prop.unfit(chosen):
        raise DataError(f"{prop.name} says nothing about {chosen}: {why}")
    going = _Hunt(chosen, prop, Scope(chosen, prop, conditions), options, np.random.default_rng(rng))
    with tqdm(total=trials, disable=None if progress else True, unit="trial", leave=False) as bar:
        while going.trials < trials:
            before = going.trials
            going.batch(min(options.batch, trials - before), options.climbing)
            bar.update(going.trials - before)
            if found := going.found():
                return Hunted(found, going.trials, going.doubted)
    return Hunted(None, going.trials, going.doubted)


class _Hunt:
    """A search as it goes on: the elite, with their losses."""

    def __init__(
        self, mechanism: Mechanism, prop: Property, scope: Scope, options: SearchOptions, rng: np.random.Generator
    ) -> None:
        self.mechanism, self.prop, self.scope, self.options, self.rng = mechanism, prop, scope, options, rng
        self.elite: list[tuple[float, Instance]] = []
        self.trials = 0
        self.doubted = 0.0

    def batch(self, size: int, climbing: float) -> None:
        """Try so many instances."""
        climbers = [self._climber() for _ in range(int(climbing * size))] if self.elite else []
        tried = [one for one in climbers if one in self.scope]
        tried += self._drawn(size - len(tried))
        self.trials += size
        losses = self.losses(tried)
        self.elite += [(loss, one) for loss, one in zip(losses, tried, strict=True) if loss > -1]
        self.elite = sorted(self.elite, key=lambda each: -each[0])[: self.options.elite]

    def losses(self, some: Sequence[Instance]) -> list[float]:
        """The largest loss of each; -1 where there is no answer."""
        found = cases(self.mechanism, some, 1e-8)
        return [-1.0 if case is None else float(self.prop.find(case).violation) for case in found]

    def found(self) -> Witness | None:
        """The witness of the elite's largest violation that can be verified."""
        if not self.elite or self.elite[0][0] <= MARGIN:
            return None
        for _ in range(self.options.further):
            self.batch(self.options.batch, 1.0)
        route, loss, instance = self._best()
        if instance is not None:
            least = max(self.options.kept * loss, 2 * MARGIN)
            small = shrunk(instance, partial(self._survive, least, ROUTES[: route + 1]))
            return recorded(self.mechanism, self.prop.name, renumbered(small))
        self.doubted = max(self.doubted, self.elite[0][0])
        self.elite = [each for each in self.elite if each[0] <= MARGIN]
        return None

    def _best(self) -> tuple[int, float, Instance | None]:
        """Of the elite, which of those that are verified in the best way loses most: the way's number and the loss.

        Where nothing is proved, as a rule because answers are tied, 100 others near to it and 100 new ones are tried,
        and the 16 of each that lose most are looked at.
        """
        best = self._first(self.elite, (len(ROUTES), 0.0, None))
        if best[2] is not None and ROUTES[best[0]] == CERTIFIED:
            near = [one for one in (moved(best[2], self.rng) for _ in range(100)) if one in self.scope]
            for others in (near, self._drawn(100)):
                losses = sorted(zip(self.losses(others), others, strict=True), key=lambda each: -each[0])
                best = self._first(losses[:16], best)
        return best

    def _first(
        self, some: Sequence[tuple[float, Instance]], best: tuple[int, float, Instance | None]
    ) -> tuple[int, float, Instance | None]:
        """The first that is proved, else `best`, else the first that is verified at all."""
        for loss, instance in some:
            if loss > MARGIN and (found := violated(self.mechanism, self.prop.name, instance)):
                route = ROUTES.index(found.route)
                best = (route, loss, instance) if route < best[0] else best
                if found.route != CERTIFIED:
                    break
        return best

    def _survive(self, least: float, routes: Sequence[str], some: Sequence[Instance]) -> list[bool]:
        within = [one in self.scope for one in some]
        losses = iter(self.losses([one for one, good in zip(some, within, strict=True) if good]))
        large = [good and next(losses) >= least for good in within]
        first = next((k for k, one in enumerate(some) if large[k] and self._violated(one, routes)), None)
        return [k == first for k in range(len(some))]

    def _violated(self, instance: Instance, routes: Sequence[str]) -> bool:
        found = violated(self.mechanism, self.prop.name, instance)
        return found is not None and found.route in routes

    def _climber(self) -> Instance:
        """One of the elite, changed at random."""
        return moved(self.elite[int(self.rng.integers(len(self.elite)))][1], self.rng)

    def _drawn(self, size: int) -> list[Instance]:
        """New clusters, with changes."""
        made: list[Instance] = []
        for _ in range(40 * size):  # few clusters may meet the conditions
            if len(made) >= size:
                break
            cluster = draw(self.rng, self.prop)
            try:
                cluster = seen(self.mechanism, cluster)
            except DataError:
                continue
            if self.prop.domain(cluster):
                continue
            changes = instances(self.prop, cluster, self.rng, 4)
            made += [one for one in changes if one in self.scope]
        if size and not made:
            raise DataError(f"no cluster drawn meets the conditions of {self.prop.name} for {self.mechanism}")
        return made[:size]
