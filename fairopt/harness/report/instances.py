"""Frozen set of benchmark instances for other solvers: JSON and MatrixMarket files, with certified solutions.

Each instance is a folder `NAME/`:

- `answer.json`: cluster, criterion, tasks and prices, as written by `Allocation.save` (docs/allocation-file.md);
- `A.mtx`, `b.mtx`: capacity constraints `A y <= b`, with y the tasks of eligible (user, server) pairs, by user;
- `U.mtx`: tasks of users, `x = U y`; `share.mtx`, `weight.mtx`: shares per task and weights of users;
- `y.mtx`: the solution.

The problem is stated in `index.json`: alpha, and whether the criterion is that of the pool or of the per-server game. A
set is never changed: other instances form a set of another name.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ... import mechanisms
from ...base import files as _files
from ...base.errors import DataError
from ...base.libraries import sp
from ...model.cluster import Cluster
from ...result.allocation import Allocation
from ...workloads import open_source
from ..papers import instance
from ..run import provenance

SET = "fairopt-instances-1"
#: Sources of clusters by name, with their seeds.
SOURCES = {
    "drf-example": "paper:drf-4.1",
    "drfh-figure1": "paper:drfh-fig1",
    "pf-figure1": "paper:pf-fig1",
    "pf-variant": "paper:pf-fig1-variant",
    "machines-30x6": "bitbrains-like?vms=30&servers=6&seed=1",
    "machines-100x20": "bitbrains-like?vms=100&servers=20&seed=2",
    "users-40x60": "google-like?users=40&servers=60&seed=3",
    "dense-60x25": "lognormal?users=60&servers=25&seed=4",
    "dense-200x60": "lognormal?users=200&servers=60&seed=5",
    "sparse-200x60": "lognormal?users=200&servers=60&density=0.1&seed=6",
}
#: Mechanisms that are solved on each cluster.
QUESTIONS = {
    "ceei": "ceei",
    "alpha3": "alpha-fair(alpha=3)",
    "drfh": "drfh",
    "game3": "alphapf-vds(alpha=3, select=fast)",
    "psdsf": "ps-dsf",
}
TOLERANCE = 1e-9


def cluster_of(name: str) -> Cluster:
    """Cluster of a source, by its name in `SOURCES`."""
    source = SOURCES[name]
    return instance(source.removeprefix("paper:")) if source.startswith("paper:") else open_source(source).cluster


def names() -> list[str]:
    """Names of all instances, `SOURCE-QUESTION`."""
    return [f"{source}-{question}" for source in SOURCES for question in QUESTIONS]


def export(folder: Path, chosen: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Solve, certify and write instances one after another, yielding rows of the index, which is written last.

    Raises
    ------
    DataError
        There is no such instance.
    """
    wanted = names() if chosen is None else chosen
    if unknown := [name for name in wanted if name not in names()]:
        raise DataError(f"there is no instance {unknown[0]!r}; known: {', '.join(names())}")
    rows = []
    for name in wanted:
        source, _, question = name.rpartition("-")
        answer = mechanisms.one(QUESTIONS[question]).solve(cluster_of(source), TOLERANCE)
        rows.append(_written(folder / name, name, SOURCES[source], answer))
        yield rows[-1]
    index = {"set": SET, "tolerance": TOLERANCE, "code": provenance(), "instances": rows}
    _files.write(folder / "index.json", json.dumps(index, indent=1) + "\n", "index")


def matrices(answer: Allocation) -> dict[str, Any]:
    """Matrices of the MatrixMarket files by name, on the allocation's cluster (a pool for pooled mechanisms)."""
    cluster, criterion = answer.cluster, answer.criterion
    users, servers = np.nonzero(cluster.eligible)
    pairs, resources = np.arange(len(users)), len(cluster.resources)
    rows = servers[:, None] * resources + np.arange(resources)
    shape = (len(cluster.servers) * resources, len(users))
    use = sp.coo_matrix((cluster.demand[users].ravel(), (rows.ravel(), np.repeat(pairs, resources))), shape=shape)
    use.eliminate_zeros()
    return {
        "A": use,
        "b": cluster.capacity.reshape(-1, 1),
        "U": sp.coo_matrix((np.ones(len(users)), (users, pairs)), shape=(len(cluster.users), len(users))),
        "weight": np.asarray(criterion.weight, dtype=float).reshape(-1, 1),
        "y": answer.tasks[users, servers].reshape(-1, 1),
        "share": np.asarray(criterion.share, dtype=float).reshape(len(cluster.users), -1),
    }


def _written(folder: Path, name: str, source: str, answer: Allocation) -> dict[str, Any]:
    from scipy.io import mmwrite

    _files.folder(folder)
    answer.save(folder / "answer.json")
    files = [folder / "answer.json"]
    for part, matrix in matrices(answer).items():
        text = io.BytesIO()
        mmwrite(text, matrix, comment=f"{SET}: {name}", precision=17)
        files.append(folder / f"{part}.mtx")
        _files.write(files[-1], text.getvalue(), "matrix")
    criterion = answer.criterion
    return {
        "name": name,
        "source": source,
        "mechanism": answer.mechanism,
        "alpha": str(criterion.alpha),
        "scope": criterion.scope,
        "users": len(answer.cluster.users),
        "servers": len(answer.cluster.servers),
        "resources": len(answer.cluster.resources),
        "certificate": float(answer.certificate.optimality),
        "feasibility": float(answer.certificate.feasibility),
        "files": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
    }
