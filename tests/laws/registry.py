"""Which mechanisms the laws are about, and what each of them is, as far as its criterion says so."""

from __future__ import annotations

import os

import numpy as np
from hypothesis import strategies as st
from strategies import clusters

from fairopt.errors import DataError
from fairopt.mechanisms import REGISTRY, Mechanism, get, names
from fairopt.model.cluster import Cluster
from fairopt.model.criterion import ConcaveWelfare

#: Everything that comparisons show by default, of the mechanisms that come with the package.
VARIANTS = [
    variant for name in names() if get(name).__module__.startswith("fairopt.") for variant in get(name).variants()
]

#: Other parameters, on fewer clusters: every mechanism says which are worth it.
OTHERS = [
    trial for _, kind in sorted(REGISTRY.items()) if kind.__module__.startswith("fairopt.") for trial in kind.trials()
]

#: Random clusters per mechanism; `make test-long` takes many more.
MANY = int(os.environ.get("FAIROPT_LAW_CLUSTERS", "25"))

#: By how much fewer clusters those take that have no engine but CVXPY, or whose slopes are CVXPY's: each takes twenty
#: times as long.
FEWER = 3

SMALL = Cluster([[9, 18], [4, 2]], [[1, 4], [3, 1]])
ONE_RESOURCE = SMALL.select(resources=SMALL.resources[:1])


def identify(mechanism: Mechanism) -> str:
    """The name as the registry has it, with parameters: `drf`, `alpha-fair(alpha=2)`."""
    _, bracket, parameters = str(mechanism).partition("(")
    return f"{mechanism.name}{bracket}{parameters}".replace(" ", "")


def refuses(mechanism: Mechanism, cluster: Cluster) -> bool:
    """Does the mechanism say that it is not defined there? Nothing is solved."""
    try:
        mechanism.check(cluster)
        mechanism.criterion(mechanism.prepare(cluster)[0])
    except DataError:
        return True
    return False


def share_of(mechanism: Mechanism, count: int) -> int:
    """How many of so many clusters a law tries a mechanism on: all, or a part where it needs CVXPY."""
    criterion = mechanism.criterion(mechanism.prepare(ONE_RESOURCE)[0])
    slow = isinstance(criterion, ConcaveWelfare) or mechanism.engines(criterion) == ("declarative",)
    return -(-count // FEWER) if slow else count


def resources(mechanism: Mechanism, most: int = 3) -> int:
    """How many resources it takes, at most."""
    return 1 if refuses(mechanism, SMALL) else most


def takes_limits(mechanism: Mechanism) -> bool:
    return not refuses(mechanism, ONE_RESOURCE.replace(max_tasks=[1.0, 1.0]))


def counts_tasks(mechanism: Mechanism) -> bool:
    """Does a user gain by calling two of its tasks one? A share of the cluster would double with the task."""
    cluster = mechanism.prepare(ONE_RESOURCE)[0]
    larger = cluster.replace(demand=2 * cluster.demand)
    before, after = (np.asarray(mechanism.criterion(one).share) for one in (cluster, larger))
    return not np.allclose(after, 2 * before)


def has_floors(mechanism: Mechanism) -> bool:
    """Does its criterion guarantee tasks to somebody?"""
    return bool(mechanism.criterion(mechanism.prepare(ONE_RESOURCE)[0]).floor.any())


def weighs_users(mechanism: Mechanism) -> bool:
    """Do weights enter its criterion? With alpha = 0 they count for nothing there."""
    cluster = mechanism.prepare(ONE_RESOURCE.replace(weight=[1.0, 3.0]))[0]
    criterion = mechanism.criterion(cluster)
    return criterion.alpha > 0 and bool(np.ptp(criterion.weight) > 0)


def weighs_ratios(mechanism: Mechanism) -> bool:
    """Do only ratios of weights matter? Then three times the weights count every task by the same factor."""
    cluster = mechanism.prepare(ONE_RESOURCE)[0]
    once, thrice = (mechanism.criterion(cluster.replace(weight=w * cluster.weight)) for w in (1.0, 3.0))
    if np.isinf(once.alpha):
        return True
    tasks = np.array([1.0, 2.0])
    # In the game on every server.
    return bool(np.ptp(thrice.log_marginal(tasks) - once.log_marginal(tasks), axis=0).max() < 1e-9)


def one_answer(mechanism: Mechanism) -> bool:
    """Is there one answer, in tasks of users? Equilibria may be several, and so may be optima at alpha = 0.

    Nor has a property (a certificate of the mechanism's own) one allocation that meets it.
    """
    criterion = mechanism.criterion(mechanism.prepare(ONE_RESOURCE)[0])
    return criterion.scope != "game" and criterion.alpha > 0 and type(mechanism).certify is Mechanism.certify


UNIQUE = [mechanism for mechanism in VARIANTS if one_answer(mechanism)]
GAMES = [m for m in VARIANTS if m.criterion(m.prepare(ONE_RESOURCE)[0]).scope == "game"]
#: Those whose proportional servers act as one.
SCALE_FREE_GAMES = [m for m in GAMES if m.criterion(ONE_RESOURCE).scale_free]


def applicable(mechanism: Mechanism) -> st.SearchStrategy[Cluster]:
    """Well-conditioned clusters on which the mechanism is defined."""
    return clusters(
        styles=("plain", "nice"),
        max_users=4,
        max_servers=3,
        max_resources=resources(mechanism),
        limits=takes_limits(mechanism),
    )
