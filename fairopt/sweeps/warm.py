"""Loops compiled before somebody waits for them: all that can be foreseen, once for a machine (`fairopt warmup`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import numpy as np

from .. import _loops, _progress
from .._libraries import pd
from ..errors import FairoptError
from ..game.dynamics.distributed import best_response
from ..game.dynamics.orders import ORDERS
from ..game.enumeration.all_equilibria import equilibria
from ..many import solve_many
from ..mechanisms import Mechanism, chosen, get
from ..model.cluster import Cluster
from ..model.problem import Problem
from ..scheduling.simulator import simulate
from ..scheduling.workload import Workload
from .solve import TINY

Question = Callable[[], object]


def everything(progress: bool = False) -> None:
    """Ask every engine of every mechanism, and every order of the game, for answers to small clusters."""
    questions = [*_questions()]
    for question in _progress.tqdm(questions, desc="compiling, once", unit="question", disable=not progress):
        with suppress(FairoptError), np.errstate(all="ignore"), _loops.compiling():
            question()


def _questions() -> Iterator[Question]:
    tasks = pd.DataFrame({"user": "a", "duration": 1.0, "cpu": [1.0]})
    workload = Workload.from_frames(tasks, pd.DataFrame({"cpu": [1.0]}))
    yield partial(simulate, workload, "first-fit-drfh", engine="compiled")
    limited = TINY.replace(max_tasks=[1.0, 2.0, np.inf])
    for mechanism in chosen(None):
        for engine in mechanism.engines():
            if engine != "declarative":
                for cluster in (TINY, limited, TINY.select(resources=TINY.resources[:1])):
                    yield partial(mechanism.solve, cluster, engine=engine, throw=False)
                    if engine != "best-response":
                        yield partial(_exhaust, mechanism, cluster, engine)
    for order in ORDERS:
        for alpha in (2.0, np.inf):
            yield partial(best_response, TINY, alpha, order=order, rng=0, throw=False)
    yield partial(equilibria, TINY, 3.0)
    for name in chosen(("drf", "drfh", "per-server-drf", "alpha-fair(alpha=2)", "alphapf-vds(alpha=3)", "ps-dsf",
                        "utilitarian")):  # fmt: skip
        yield partial(solve_many, name, [TINY, limited])
    rng = np.random.default_rng(0)
    # Loops for this many resources have code of their own.
    for resources in (2, 3, 4, 5, 6):
        yield from _several(Cluster(rng.uniform(5, 9, (8, resources)), rng.uniform(1, 2, (12, resources))))
    # More users and servers than any engine keeps all pairs of in its steps.
    users, servers = 300, 100
    yield from _several(Cluster(rng.lognormal(2, 1, (servers, 3)), rng.lognormal(0, 1, (users, 3))))


def _several(cluster: Cluster) -> Iterator[Question]:
    games = (get("alphapf-vds", alpha=alpha) for alpha in (3, 30))
    for mechanism in (get("drfh"), get("ps-dsf"), get("alpha-fair", alpha=2), *games):
        yield partial(mechanism.solve, cluster, throw=False)


def _exhaust(mechanism: Mechanism, cluster: Cluster, engine: str) -> None:
    """All that an engine would try, though the first answer is good enough."""
    seen, _ = mechanism.prepare(cluster)
    for _ in mechanism.solutions(Problem(seen, mechanism.criterion(seen)), engine, mechanism.default_tol, None):
        pass
