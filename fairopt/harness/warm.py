"""Compilation of all foreseeable loops ahead of their use, once per machine (`fairopt warmup`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import product

import numpy as np

from ..base import loops
from ..base import progress as _progress
from ..base.errors import FairoptError
from ..base.libraries import pd, sp
from ..mechanisms import Mechanism, chosen
from ..mechanisms.drf import DRF
from ..model.cluster import Cluster
from ..model.problem import Problem
from ..scheduling.simulator import simulate
from ..scheduling.workload import Workload
from .solve import TINY

Question = Callable[[], object]


def everything(progress: bool = False) -> None:
    """Run all engines, except the declarative engine, of all mechanisms on small clusters, and the simulator.

    A `FairoptError` of a run is ignored.
    """
    questions = [*_questions()]
    for question in _progress.tqdm(questions, desc="compiling, once", unit="question", disable=not progress):
        with suppress(FairoptError), np.errstate(all="ignore"), loops.compiling():
            question()


def _questions() -> Iterator[Question]:
    tasks = pd.DataFrame({"user": "a", "duration": 1.0, "cpu": [1.0]})
    workload = Workload.from_frames(tasks, pd.DataFrame({"cpu": [1.0]}))
    yield partial(simulate, workload, "first-fit-drfh", engine="compiled")
    many = sp.eye_array(1001, format="csr")  # more than a million entries, so that the demand stays sparse
    yield lambda: DRF().solve(Cluster(np.ones((1, 1001)), many))
    # Arrays of a single resource have another memory layout, and hence another signature.
    for mechanism, cluster in product(chosen(None), (TINY, TINY.select(resources=TINY.resources[:1]))):
        for engine in mechanism.engines():
            if engine != "declarative":
                yield partial(mechanism.solve, cluster, engine=engine, throw=False)
                if engine != "best-response":
                    yield partial(_exhaust, mechanism, cluster, engine)


def _exhaust(mechanism: Mechanism, cluster: Cluster, engine: str) -> None:
    """Run all attempts of an engine, although the first attempt succeeds."""
    seen, _ = mechanism.prepare(cluster)
    for _ in mechanism.solutions(Problem(seen, mechanism.criterion(seen)), engine, mechanism.default_tol, None):
        pass
