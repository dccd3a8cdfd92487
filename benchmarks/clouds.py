"""Sizes of clouds: sparse pools, and servers of ten types, beside a loop over levels, and HiGHS for the first level.

    python -m benchmarks.clouds                       # all of it: the scope that README names
    python -m benchmarks.clouds --only "DRF 10,000 x 1,000" --limit 60

Columns are CPU seconds of one thread for a whole call, certification included and the construction of the cluster
excluded, with the certificate; memory of the process at its peak; and CPU seconds of a peer for a part of the problem,
without a proof. Each runs in a process of its own, with at most 4 GiB of addresses besides those of its start. `DRF`: a
pool of resources of which every user demands eight; the peer raises all levels until a resource is exhausted, one pass
over the nonzero demands a level. Others: servers of the ten classes of Google's trace, merged by both.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Callable
from functools import partial

from benchmarks.peers import Problem, limited, simplex  # first: threads are chosen there

import numpy as np  # isort: skip
import pandas as pd  # isort: skip
import scipy.sparse as sp  # isort: skip

import fairopt as fo  # isort: skip
from benchmarks.families import google  # isort: skip
from fairopt.model._arrays import Array  # isort: skip

_GIB = 2**30
#: Demands of a user of a sparse pool.
_EACH = 8


def pool(users: int, resources: int, rng: np.random.Generator) -> fo.Cluster:
    """Pool of which every user demands eight resources."""
    amounts, columns = rng.lognormal(0, 0.5, users * _EACH), rng.integers(resources, size=users * _EACH)
    demand = sp.csr_array((amounts, columns, np.arange(0, len(columns) + 1, _EACH)), (users, resources))
    return fo.Cluster(100 * rng.lognormal(0, 0.5, (1, resources)), demand)


def levels(cluster: fo.Cluster) -> Array:
    """DRF tasks by a loop over levels: all rise until a resource is exhausted, whose users stop."""
    share = sp.csr_array(cluster.share_per_task).multiply(1 / cluster.dominant_share_per_task[:, None]).tocsr()
    by_resource, level = share.T.tocsr(), np.zeros(len(cluster.users))
    left, rising = np.ones(share.shape[1]), np.ones(len(level))
    while rising.any():
        rate = by_resource @ rising
        rise = np.divide(left, rate, out=np.full(len(left), np.inf), where=rate > 0)
        level += rise.min() * rising
        left -= rise.min() * rate
        full = np.isclose(rise, rise.min(), rtol=1e-12)
        rising[share @ full > 0] = 0.0
    return level / cluster.dominant_share_per_task


def first_level(mechanism: fo.mechanisms.Mechanism, cluster: fo.Cluster) -> Array:
    """First level of max-min by HiGHS, on merged users and servers."""
    return simplex(Problem(mechanism, fo.merge(cluster).cluster, None), every=False)


Peer = Callable[[fo.Cluster], Array] | None
_DRFH, _CEEI, _GAME = fo.DRFH(), fo.CEEI("servers"), fo.AlphaPFVDS(2)
#: Mechanism, cluster, number of users and of resources or servers, and peer.
PROBLEMS: dict[str, tuple[fo.mechanisms.Mechanism, Callable[..., fo.Cluster], int, int, Peer]] = {
    "DRF 10,000 x 1,000": (fo.DRF(), pool, 10_000, 1_000, levels),
    "DRF 1,000,000 x 100,000": (fo.DRF(), pool, 1_000_000, 100_000, levels),
    "DRFH 10,000 x 10,000": (_DRFH, google, 10_000, 10_000, partial(first_level, _DRFH)),
    "DRFH 1,000,000 x 1,000,000": (_DRFH, google, 1_000_000, 1_000_000, partial(first_level, _DRFH)),
    "CEEI 1,000,000 x 1,000,000": (_CEEI, google, 1_000_000, 1_000_000, None),
    "alphaPF-VDS(2) 1,000,000 x 1,000,000": (_GAME, google, 1_000_000, 1_000_000, None),
}


def ours(mechanism: fo.mechanisms.Mechanism, cluster: fo.Cluster) -> Array:
    """Residual of the certificate, and GiB at the peak."""
    found = mechanism.solve(cluster)
    return np.array([found.certificate.residual, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / _GIB])


def row(name: str, limit: int) -> dict[str, str]:
    """Seconds, certificate and memory, and seconds of the peer."""
    mechanism, draw, users, others, peer = PROBLEMS[name]
    cluster = draw(users, others, np.random.default_rng(1))
    resource.setrlimit(resource.RLIMIT_AS, (8 * _GIB, resource.RLIM_INFINITY))
    used, found = limited(partial(ours, mechanism, cluster), limit)
    row = {"": name, "fairopt": used, "GiB": ""}
    if found is not None:
        row |= {"fairopt": f"{used} ({found[0]:.0e})", "GiB": f"{found[1]:.1f}"}
    if peer is not None:
        row["loop, or HiGHS's first level"] = limited(partial(peer, cluster), limit)[0]
    return row


def main() -> None:
    """Measure all, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(PROBLEMS), choices=PROBLEMS, help="these problems")
    parser.add_argument("--limit", type=int, default=120, help="CPU seconds of a call")
    asked = parser.parse_args()
    fo.DRF().solve(pool(3000, 1000, np.random.default_rng(0)))  # compilation precedes the measurement
    for mechanism in (_DRFH, _CEEI, _GAME):
        mechanism.solve(google(60_000, 100, np.random.default_rng(0)))
    found = [row(name, asked.limit) for name in asked.only]
    print(pd.DataFrame(found).fillna("").to_markdown(index=False, disable_numparse=True))


if __name__ == "__main__":
    main()
