"""Random clusters, calibrated to the traces by small tables in `data/`; no trace is needed.

Demands have the measured marginals and rank correlations (`_draw.Marginals`). Each generator draws servers before
users, both from the given `rng`, so that its state determines the cluster.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from ..model import _validate
from ..model._arrays import Array, Index
from ..model.cluster import Cluster
from ..scheduling.workload import one_of
from . import alibaba, google2011
from ._draw import Count, Probability, eligible, measured, placed, positive, probability
from ._pf_servers import Kinds as PFKinds
from ._pf_servers import pf_servers
from ._snapshot import Snapshot
from .bitbrains import Statistic
from .sources import generator


@generator("google-like", "random users and servers like Google's")
def google_like(
    rng: np.random.Generator,
    users: Count = 100,
    servers: Count = 1000,
    max_tasks: bool = False,
    density: Probability = 1.0,
    by: google2011.Kinds = "class",
) -> Snapshot:
    """Draw users like those of Google's trace of 2011, and servers from the ten classes of the published table.

    Resources are `cpu` and `memory`, relative to the largest machine. Classes of servers are drawn in proportion to
    their numbers among the 12,583 machines; the name of a server begins with its class, 1 to 10 by frequency.

    Parameters
    ----------
    rng : Generator
    users, servers : int
        Numbers of users and servers.
    max_tasks : bool
        Limit each user to a number of tasks drawn jointly with its demand. Default: no limit.
    density, by : float, str
        Placement, as in `google2011.cluster`.

    Returns
    -------
    Snapshot

    Raises
    ------
    DataError
        A number is not an integer >= 1, `density` is not in (0, 1], or `by` is unknown.

    >>> import numpy as np
    >>> import fairopt as fo
    >>> fo.workloads.google_like(np.random.default_rng(1), users=3, servers=5).cluster.shape
    (3, 5, 2)
    """
    positive(users, "users")
    positive(servers, "servers")
    marginals, table = measured("google")
    kinds = np.array(table["servers"], dtype=float)
    drawn = _kinds(rng, kinds[:, -1], servers)
    rows = marginals.draw(rng, users, demands=2)
    cluster = Cluster(
        kinds[drawn, :-1],
        rows[:, :2],
        eligible=google2011.placement(kinds[drawn, :-1], users, density, by, rng),
        max_tasks=_whole(rows[:, 2]) if max_tasks else None,
        resources=google2011.RESOURCES,
        servers=_server_names(drawn),
    )
    about = f"Google-like: {users} users, {servers} servers of the ten classes of 2011"
    return _snapshot(cluster, about + placed(density, by))


@generator("bitbrains-like", "random virtual machines like those of Bitbrains")
def bitbrains_like(
    rng: np.random.Generator,
    vms: Count = 100,
    servers: Count = 20,
    statistic: Statistic = "mean",
    split_disk: bool = False,
    density: Probability = 1.0,
    by: PFKinds = "type",
) -> Snapshot:
    """Draw virtual machines like those of Bitbrains, by mean use over an hour, on the servers of `pf_servers`.

    Resources are `cpu` [GHz], `memory` [GB], `disk` [MB/s] (or `disk_read` and `disk_write`, with `split_disk`),
    `received` and `transmitted` [Mb/s].

    Parameters
    ----------
    rng : Generator
    vms : int
        Number of virtual machines; each is a user.
    servers : int
        Number of servers.
    statistic : str
        `mean` or `provisioned`. Provisioned amounts are not calibrated: mean use replaces them, as `source` states.
    split_disk : bool
        Model reading and writing as two resources.
    density, by : float, str
        Placement, as in `bitbrains.cluster`.

    Returns
    -------
    Snapshot

    Raises
    ------
    DataError
        A number is not an integer >= 1, `density` is not in (0, 1], or `statistic` or `by` is unknown.

    >>> import numpy as np
    >>> import fairopt as fo
    >>> fo.workloads.bitbrains_like(np.random.default_rng(1), vms=3, servers=2).cluster.shape
    (3, 2, 5)
    """
    positive(vms, "virtual machines")
    one_of(statistic, "statistic", Statistic)
    hosts = pf_servers(servers, split_disk=split_disk)
    marginals, _ = measured("bitbrains")
    use = dict(zip(marginals.columns, marginals.draw(rng, vms, demands=6).T, strict=True))
    use["disk"] = use["disk_read"] + use["disk_write"]
    cluster = Cluster(
        hosts.capacity,
        np.column_stack([use[name] for name in hosts.resources]),
        eligible=eligible(hosts.kinds(by), vms, density, rng),
        resources=hosts.resources,
        users=[f"vm{k + 1}" for k in range(vms)],
        servers=hosts.names,
    )
    source = f"Bitbrains-like: {vms} virtual machines, {servers} servers of three types at three locations"
    source += "; mean use stands in for provisioned sizes" if statistic == "provisioned" else ""
    return _snapshot(cluster, source + placed(density, by))


@generator("alibaba-like", "random groups of pods and nodes like Alibaba's")
def alibaba_like(
    rng: np.random.Generator, users: Count = 100, servers: Count = 100, max_tasks: bool = False
) -> Snapshot:
    """Draw groups of pods like those of Alibaba's GPU cluster, and servers from its 27 kinds of nodes.

    Resources are `cpu` [cores], `memory` [GiB], and `gpu` [GPUs]. Users that need GPUs are restricted to certain models
    as often as in the trace, and always to a model that exists among the servers.

    Parameters
    ----------
    rng : Generator
    users, servers : int
        Numbers of users (groups of pods) and servers.
    max_tasks : bool
        Limit each user to a number of pods drawn jointly with its demand. Default: no limit.

    Returns
    -------
    Snapshot

    Raises
    ------
    DataError
        A number is not an integer >= 1.

    >>> import numpy as np
    >>> import fairopt as fo
    >>> fo.workloads.alibaba_like(np.random.default_rng(1), users=3, servers=5).cluster.shape
    (3, 5, 3)
    """
    positive(users, "users")
    positive(servers, "servers")
    marginals, table = measured("alibaba")
    kinds = table["servers"]
    drawn = _kinds(rng, np.array([kind[-1] for kind in kinds], dtype=float), servers)
    model = np.array([kind[-2] for kind in kinds])[drawn]
    rows = marginals.draw(rng, users, demands=3)
    allowed = np.array([alibaba.allowed(model, "" if spec == "any" else spec) for spec, _ in table["specs"]])
    frequency = np.array([number for _, number in table["specs"]]) * allowed.any(axis=1)
    spec = _kinds(rng, frequency, users)
    cluster = Cluster(
        np.array([kind[:-2] for kind in kinds], dtype=float)[drawn],
        rows[:, :3],
        eligible=allowed[spec] | (rows[:, 2] == 0)[:, None],
        max_tasks=_whole(rows[:, 3]) if max_tasks else None,
        resources=alibaba.RESOURCES,
        servers=_server_names(drawn),
    )
    source = f"Alibaba-like: {users} groups of pods, {servers} servers of the 27 kinds of nodes of 2023"
    return _snapshot(cluster, source)


def _spread(sigma: float, what: str) -> None:
    """Check for a number in [0, 10]; larger numbers yield data beyond the range of a cluster."""
    _validate.number(sigma, what, "a number from 0 to 10", lambda part: 0 <= part <= 10)


@generator("lognormal", "random users and servers, no two alike, with any density of placement")
def lognormal(
    rng: np.random.Generator,
    users: Count = 100,
    servers: Count = 20,
    resources: Count = 4,
    density: Probability = 1.0,
    sigma: Annotated[float, _spread] = 0.5,
) -> Snapshot:
    r"""Draw heterogeneous users and servers with lognormal data.

    .. math:: C_{ir} = 100\, e^{\sigma z_{ir}}, \quad d_{nr} = e^{\sigma z_{nr}}, \quad z \sim N(0, 1)

    where C are capacities, d demands, and all z independent.

    Parameters
    ----------
    rng : Generator
    users, servers, resources : int
        Size of the cluster.
    density : float
        Probability in (0, 1] that a user is eligible on a server; each user is eligible on at least one server.
    sigma : float
        Standard deviation of logarithms, in [0, 10].

    Returns
    -------
    Snapshot

    Raises
    ------
    DataError
        A number is not an integer >= 1, `density` is not in (0, 1], or `sigma` is not in [0, 10].

    >>> import numpy as np
    >>> import fairopt as fo
    >>> fo.workloads.lognormal(np.random.default_rng(1), users=3, servers=2).cluster.shape
    (3, 2, 4)
    """
    for number, what in ((users, "users"), (servers, "servers"), (resources, "resources")):
        positive(number, what)
    probability(density, "density")
    _spread(sigma, "sigma")
    capacity = 100 * np.exp(sigma * rng.standard_normal((servers, resources)))
    demand = np.exp(sigma * rng.standard_normal((users, resources)))
    may = eligible(range(servers), users, density, rng)
    source = f"lognormal: {users} users, {servers} servers, {resources} resources, density {density:g}, sigma {sigma:g}"
    return _snapshot(Cluster(capacity, demand, eligible=may), source)


def _kinds(rng: np.random.Generator, frequency: Array, count: int) -> Index:
    return np.asarray(rng.choice(len(frequency), size=count, p=frequency / frequency.sum()), dtype=np.intp)


def _server_names(kinds: Index) -> list[str]:
    return [f"class{kind + 1}-{k + 1}" for k, kind in enumerate(kinds)]


def _whole(tasks: Array) -> Array:
    return np.maximum(1.0, tasks.round())


def _snapshot(cluster: Cluster, source: str) -> Snapshot:
    users, servers, _ = cluster.shape
    return Snapshot(cluster, source, {"users drawn": users, "servers drawn": servers})
