"""Random workloads that crowd their servers: users of several sizes of tasks, who leave, on servers that go.

And single pools without time, and policies as their users write them.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from fairopt.model.cluster import Cluster
from fairopt.scheduling.policies import Policy
from fairopt.scheduling.workload import Workload


def workload(seed: int, **options: Any) -> Workload:
    """The workload of `tables`."""
    return Workload.from_frames(**tables(seed, **options))


def tables(
    seed: int, rows: int = 14, servers: int = 3, users: int = 3, resources: int = 2, constrained: bool = True,
    changes: bool = True, loops: bool = False, whole: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """Small whole numbers, so that shares and scores tie often and things happen at the same time.

    Unless `whole`: amounts are parts of those, times sevenths of seconds.
    """
    rng = np.random.default_rng(seed)
    names = ["cpu", "memory", "disk", "network"][:resources]
    who = rng.integers(0, users, rows)
    tasks = pd.DataFrame(
        {
            "user": [f"u{n}" for n in who],
            "job": [f"{n}/{k}" for n, k in zip(who, rng.integers(0, 3, rows), strict=True)],
            "arrival": rng.integers(0, 8, rows) * rng.choice([0, 1], p=[0.3, 0.7]),
            "duration": rng.integers(1, 7, rows),
            "tasks": rng.integers(1, 5, rows),
        }
    )
    for name in names:
        tasks[name] = rng.integers(0, 4, rows)
    tasks.loc[(tasks[names] == 0).all(axis=1), names[-1]] = 1
    if loops:  # jobs by name: each after one with a smaller name, so that nothing goes round
        names_of_jobs = sorted(set(tasks["job"]))
        before = {job: rng.choice(["", *names_of_jobs[:k]]) for k, job in enumerate(names_of_jobs)}
        tasks["after"] = [before[job] for job in tasks["job"]]
    machines = pd.DataFrame({name: rng.integers(3, 7, servers) for name in names})
    machines["server"] = [f"s{k}" for k in range(servers)]
    if constrained:
        where = ["", "", "s0", "s1|s0" if servers > 1 else "s0", f"s{servers - 1}"]
        tasks["on"] = rng.choice(where, rows)
    about = pd.DataFrame({"user": [f"u{n}" for n in range(users)], "weight": rng.choice([1.0, 1.0, 2.0, 0.5], users)})
    events = None
    if changes:
        about["leaves"] = np.where(rng.random(users) < 0.3, rng.integers(0, 15, users), np.inf)
        times = np.sort(rng.integers(0, 16, 2 * servers))
        up = dict.fromkeys(range(servers), True) | {k: False for k in range(servers) if rng.random() < 0.2}
        found = []
        for time, server in zip(times.tolist(), rng.integers(0, servers, len(times)).tolist(), strict=True):
            up[server] = not up[server]
            found.append({"time": time, "server": f"s{server}", "up": up[server]})
        events = pd.DataFrame(found)
    if not whole:
        tasks[names] *= rng.uniform(0.3, 1, (rows, resources))
        tasks[["arrival", "duration"]] /= 7
    return {"tasks": tasks, "servers": machines, "users": about, "changes": events}


@st.composite
def pools(draw: st.DrawFn, least: int = 1) -> Cluster:
    """One server, whole numbers that tie; `least` is what everybody demands of every resource."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    users, resources = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    demand = rng.integers(least, 6, (users, resources))
    demand[demand.sum(axis=1) == 0, 0] = 1
    return Cluster([rng.integers(5, 41, resources)], demand, rng.integers(1, 5, users))


def with_methods(policy: Policy) -> Policy:
    """The same policy, written as methods of arrays."""
    kind: Any = type(policy)
    names = ["share", *(["value"] if policy.pairs else ["score"]), *(["limit"] if policy.limits else [])]

    def method(of: Any) -> Any:
        return lambda self, *given: of.__get__(self, kind)(*given)

    methods = {name: method(getattr(kind, name)) for name in names}
    made = type("Methods", (kind,), methods | {"name": ""})
    return made(**{field.name: getattr(policy, field.name) for field in fields(policy)})
