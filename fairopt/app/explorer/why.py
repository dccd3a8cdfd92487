"""Explanation of a user's running tasks: demand, limiting resource, competitors, next starts, and what-ifs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...base.errors import DataError
from ...harness.report.reported import WhatIf, Why
from ...result.holds import holds
from ...workloads import Snapshot
from .edits import State
from .standing import Standing, named_users
from .verdict import Verdict, fitting, largest, next_starts
from .view import held_texts

#: Largest number of kinds of nodes for which the effect of one more node is computed.
_KINDS = 3


def why(found: Standing, name: str, snapshot: Snapshot | None) -> list[Why]:
    """Explain the running tasks of a user, or of each user of a namespace or account, the largest shortfall first.

    Raises
    ------
    DataError
        There is no such user or group, or the source has no running tasks.
    """
    if found.judged is None or snapshot is None:
        raise DataError("--user asks why a user runs what it runs, and this source does not say what runs")
    session = found.session
    edited = session.edited(session.state)
    here = {start: n for n, start in enumerate(edited.user_of.tolist())}
    users = [here[n] for n in named_users(session.start, name) if n in here]
    answer = session.allocation(session.state)
    limits = held_texts(answer, holds(answer))
    next_ = next_starts(found.judged.runs, found.judged.due)
    made = [_why(found, found.judged, n, snapshot, limits[n], next_) for n in users]
    return sorted(made, key=lambda one: -one.shortfall)


def _why(found: Standing, judged: Verdict, n: int, snapshot: Snapshot, limit: str, next_: list[tuple[int, int]]) -> Why:
    """Explanation for user n; `limit` is the bottleneck of its entitlement, `next_` the next starts (user, server)."""
    cluster, held = judged.runs.cluster, judged.held[n]
    user, order = cluster.users[n], [m for m, _ in next_]
    return Why(
        user=user,
        weight=float(cluster.weight[n]),
        running=float(judged.runs.arrays.user_tasks[n]),
        wanted=_finite(cluster.max_tasks[n]),
        waiting=dict(snapshot.waiting.get(user, {})),
        capped=dict(snapshot.capped.get(user, {})),
        leaving=float(snapshot.leaving.get(user, 0.0)),
        entitled=float(judged.due[n]),
        entitled_limited_by=limit,
        shortfall=float(judged.below[n]),
        held_by=held.words,
        holders=_holders(judged, n),
        could_start=held.could_start,
        starts=order.count(n),
        starts_before=order.index(n) if n in order else len(order),
        what_if=list(_what_if(found, judged, n, snapshot, order.count(n))),
    )


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _holders(judged: Verdict, n: int) -> dict[str, float]:
    """Tasks of others on eligible nodes of user n, by decreasing use of the dominant resource of n."""
    cluster, runs = judged.runs.cluster, judged.runs
    r = int(cluster.share_per_task[n].argmax())
    there = runs.tasks[:, cluster.usable[n]].sum(axis=1)
    use = there * cluster.demand[:, r] * (np.arange(len(there)) != n)
    return {cluster.users[m]: round(float(there[m]), 6) for m in largest(use)[:5]}


def _what_if(found: Standing, judged: Verdict, n: int, snapshot: Snapshot, starts: int) -> Iterator[WhatIf]:
    """Effects of one more node of some kinds, of twice the weight, and of admitting capped tasks."""
    session, cluster = found.session, judged.runs.cluster
    start, user = session.start, int(session.edited(session.state).user_of[n])
    edits = session.state.edits
    empty = fitting(start.cluster, user, start.cluster.capacity)[start.first]
    for e in np.argsort(-np.where(empty > 0, start.counts, 0), kind="stable")[:_KINDS].tolist():
        if empty[e] > 0:
            count = int(edits.get(f"servers/{e}/count", start.counts[e])) + 1
            after = State(session.state.mechanism, session.state.alpha, {**edits, f"servers/{e}/count": count})
            runs, tasks = session.runs(session.edited(after)), session.allocation(after).arrays.user_tasks
            more = None if runs is None else [m for m, _ in next_starts(runs, tasks)].count(n) - starts
            yield WhatIf(f"one more node like {start.names[e]}", float(tasks[n]), more)
    if not empty.any():
        return
    weight = 2 * float(cluster.weight[n])
    doubled = f"a weight of {weight:.4g} in place of {weight / 2:.4g}"
    yield WhatIf(doubled, _tasks(found, user, n, "weight", weight), None)
    if capped := snapshot.capped.get(cluster.users[n]):
        most = float(cluster.max_tasks[n]) + sum(capped.values())
        yield WhatIf(f"no {' and no '.join(capped)}", _tasks(found, user, n, "max_tasks", most), None)


def _tasks(found: Standing, user: int, n: int, what: str, value: float) -> float:
    """Entitlement of a user after an edit of it."""
    session = found.session
    state = replace(session.state, edits={**session.state.edits, f"users/{user}/{what}": value})
    return float(session.allocation(state).arrays.user_tasks[n])


def sentences(one: Why, mechanism: str) -> list[str]:
    """State an explanation in sentences."""
    wanted = "no limit" if one.wanted is None else f"{one.wanted:g}"
    ending = f" ({one.leaving:g} of them are ending)" if one.leaving else ""
    waits = "; ".join(f"{tasks:g} {reason or 'for room'}" for reason, tasks in one.waiting.items())
    due = f"{one.entitled:.4g} tasks under {mechanism} at weight {one.weight:.4g}"
    said = [f"{one.user} runs {one.running:.5g}{ending}, wants {wanted}, and is entitled to {due}."]
    said += [f"Waiting, by the system's own reason: {waits}."] * bool(waits)
    said += [f"Cannot run and not counted as wanted: {tasks:g}, {reason}." for reason, tasks in one.capped.items()]

    said.append(f"Its entitlement is limited by {one.entitled_limited_by}. What holds its next task: {one.held_by}.")
    if one.holders and one.shortfall:
        named = ", ".join(f"{user} {tasks:g}" for user, tasks in one.holders.items())
        said.append(f"It is {one.shortfall:.4g} below; on its nodes run most of what it needs: {named}.")
    elif not one.shortfall:
        said.append("It lacks no whole task of its entitlement.")
    following = (
        f"{one.starts} of its tasks start, after {one.starts_before} of others"
        if one.starts
        else "none of its tasks starts"
    )
    said.append(f"If nothing is stopped, {following}.")
    for each in one.what_if:
        at_once = "" if each.starts is None else f"; {each.starts:g} more start there at once"
        said.append(f"With {each.change}: entitled to {each.entitled:.4g}{at_once}.")
    return said
