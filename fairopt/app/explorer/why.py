"""Explanation of a user's running tasks: entitlement, bottleneck, competitors, next starts, and effects of changes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...base.errors import DataError
from ...base.names import some
from ...harness.report.reported import Stage, WhatIf, Why
from ...model.tree_filling import TreeCriterion
from ...result.allocation import Allocation
from ...result.holds import holds
from ...workloads import Snapshot
from .queues import members, shares
from .session import Session
from .standing import Standing, named_users
from .verdict import Verdict, fitting, largest, next_starts
from .view import held_texts

#: Largest number of kinds of nodes for which the effect of one more node is computed.
_KINDS = 3
#: Relative difference up to which levels belong to one stage.
_SAME = 1e-6
#: Largest number of users of a stage that are named.
_NAMED = 3


def why(found: Standing, name: str, queue: bool = False) -> list[Why]:
    """Explain the running tasks of a user, or of each user of a namespace or account, the largest shortfall first.

    If `queue` is true, `name` may be a queue (`fairopt.app.explorer.queues`). The first explanation is then of all its
    users together; explanations of its users with a shortfall follow.

    Raises
    ------
    DataError
        There is no such user, group or queue, or the source has no running tasks.
    """
    session, judged = found.session, found.judged
    if judged is None or session.snapshot is None:
        option = "--queue" if queue else "--user"
        raise DataError(
            f"{option} explains why tasks run, and this source does not state which tasks run; "
            "give a snapshot, kubernetes:FILE or slurm:DIR, or an allocation file"
        )
    edited = session.edited(session.state)
    known = members(edited.cluster, session.queues(session.state)) if queue else {}
    if queue and name not in {*known, *session.start.groups, *edited.cluster.users}:
        raise DataError(f"there is no queue {name!r}; there are {some([*known])}")
    if name in known:
        users, weight = known[name].users, known[name].weight
    else:
        named = named_users(session.start, name)
        users, weight = np.flatnonzero(np.isin(edited.user_of, named)).tolist(), 0.0
    answer = session.allocation(session.state)
    order = next_starts(judged.runs, judged.due)
    asked = _Asked(session, judged, session.snapshot, held_texts(answer, holds(answer)), order)
    made = sorted((asked.why([n]) for n in users), key=lambda one: -one.shortfall)
    if not queue:
        return made
    together = asked.why(users, name, weight, stages(answer, asked.limits))
    return [together, *(one for one in made if one.shortfall and len(users) > 1)]


@dataclass(frozen=True)
class _Asked:
    """Data of explanations; `limits` are bottlenecks of entitlements, and `next_starts` are pairs (user, server)."""

    session: Session
    judged: Verdict
    snapshot: Snapshot
    limits: list[str]
    next_starts: list[tuple[int, int]]

    def why(self, users: list[int], name: str = "", weight: float = 0.0, of: Sequence[Stage] = ()) -> Why:
        """Explain a single user, or all users of the queue `name` of this weight together; `of` has its stages."""
        judged, cluster, snapshot = self.judged, self.judged.runs.cluster, self.snapshot
        named, order = [cluster.users[n] for n in users], [m for m, _ in self.next_starts]
        below, has = judged.lacks, judged.runs.arrays.user_tasks
        most = max(users, key=lambda n: (below[n], judged.held[n].could_start, judged.due[n]))
        starts = [k for k, m in enumerate(order) if m in users]
        prefix = f"{cluster.users[most]}: " if len(users) > 1 else ""
        weight = weight or float(cluster.weight[users[0]])
        return Why(
            user=name or named[0],
            weight=weight,
            running=float(has[users].sum()),
            wanted=_finite(cluster.max_tasks[users].sum()),
            waiting=_summed(snapshot.waiting, named),
            capped=_summed(snapshot.capped, named),
            leaving=sum(judged.leaving.get(user, 0.0) for user in named),
            entitled=float(judged.due[users].sum()),
            entitled_limited_by=_alike([self.limits[n] for n in users]),
            shortfall=float(judged.below[users].sum()),
            held_by=prefix + judged.held[most].words,
            holders=_holders(judged, most, users),
            could_start=sum(judged.held[n].could_start for n in users),
            starts=len(starts),
            starts_before=starts[0] if starts else len(order),
            what_if=list(self._what_if(users, name, weight, len(starts))),
            share=shares(cluster, has, [users])[0],
            share_entitled=shares(cluster, judged.due, [users])[0],
            stages=[_within(stage, named) for stage in of],
        )

    def _what_if(self, users: list[int], name: str, weight: float, starts: int) -> Iterator[WhatIf]:
        """Yield the effects of one more node of the commonest kinds, of twice the weight, and of starting capped tasks.

        Nothing is yielded for users whose tasks fit on no empty node.
        """
        session, cluster = self.session, self.judged.runs.cluster
        start, state, queues = session.start, session.state, session.queues(session.state)
        original = session.edited(state).user_of[users].tolist()
        fits = [fitting(start.cluster, user, start.cluster.capacity)[start.first] for user in original]
        empty = np.sum(fits, axis=0)
        changes: list[tuple[str, dict[str, Any]]] = []
        for e in np.argsort(-np.where(empty > 0, start.counts, 0), kind="stable")[:_KINDS].tolist():
            if empty[e] > 0:
                count = int(state.edits.get(f"servers/{e}/count", start.counts[e])) + 1
                changes.append((f"one more node like {start.names[e]}", {f"servers/{e}/count": count}))
        heavier = {f"users/{m}/weight": 2 * float(cluster.weight[n]) for m, n in zip(original, users, strict=True)}
        if name and queues is not None and name in queues.queues:
            heavier = {f"queues/{name}": 2 * weight}
        changes.append((f"a weight of {2 * weight:.4g} in place of {weight:.4g}", heavier))
        capped = {n: self.snapshot.capped.get(cluster.users[n], {}) for n in users}
        if reasons := dict.fromkeys(reason for some in capped.values() for reason in some):
            most = {f"users/{m}/max_tasks": float(cluster.max_tasks[n]) + sum(capped[n].values())
                    for m, n in zip(original, users, strict=True)}  # fmt: skip
            changes.append((f"no {' and no '.join(reasons)}", most))
        for text, edits in changes if empty.any() else ():
            after = replace(state, edits={**state.edits, **edits})
            runs, due = session.runs(session.edited(after)), session.allocation(after).arrays.user_tasks
            more = None if runs is None else sum(m in users for m, _ in next_starts(runs, due)) - starts
            yield WhatIf(text, float(due[users].sum()), more)


def stages(answer: Allocation, limits: Sequence[str]) -> list[Stage]:
    """Stages of progressive filling for a max-min allocation: each level at which users stop, and these users.

    In a tree of queues the level is that of the root, otherwise share over weight. `limits` are the bottlenecks of all
    users. There are no stages for other allocations.
    """
    rule, cluster = answer.criterion, answer.cluster
    users, tasks = np.flatnonzero(cluster.runnable), answer.arrays.user_tasks[cluster.runnable]
    if isinstance(rule, TreeCriterion):
        path = rule.filling(cluster, users).path(tasks, np.zeros((0, len(users))))
        level = path.time[path.stop]
    elif np.isinf(rule.alpha) and rule.scope in ("pool", "servers"):
        level = rule.share[users] * tasks / rule.weight[users]
    else:
        return []
    made: list[Stage] = []
    for k in np.argsort(level, kind="stable").tolist():
        user = cluster.users[users[k]]
        if not made or level[k] > made[-1].level * (1 + _SAME):
            made.append(Stage(float(level[k]), [], {}, 0))
        made[-1].users.append(user)
        made[-1].limited_by[user] = limits[users[k]]
    return made


def _within(stage: Stage, users: Sequence[str]) -> Stage:
    """Restrict a stage to some of its users, and count the others."""
    own = {user: limit for user, limit in stage.limited_by.items() if user in users}
    return Stage(stage.level, list(own), own, len(stage.users) - len(own))


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _summed(of: Mapping[str, Mapping[str, float]], users: Sequence[str]) -> dict[str, float]:
    """Sum over users of the tasks by reason."""
    total: dict[str, float] = defaultdict(float)
    for user in users:
        for reason, tasks in of.get(user, {}).items():
            total[reason] += tasks
    return total


def _alike(texts: Sequence[str]) -> str:
    """List distinct texts by decreasing frequency, each with its count; omit the count if all texts are equal."""
    counts = Counter(texts)
    return texts[0] if len(counts) == 1 else ", ".join(f"{text} ({count})" for text, count in counts.most_common())


def _holders(judged: Verdict, n: int, users: Sequence[int]) -> dict[str, float]:
    """Tasks of up to five other users on eligible nodes of user n, by decreasing use of the dominant resource of n."""
    cluster, runs = judged.runs.cluster, judged.runs
    r = int(cluster.share_per_task[n].argmax())
    there = runs.tasks[:, cluster.usable[n]].sum(axis=1)
    use = there * cluster.demand[:, r]
    use[list(users)] = 0.0
    return {cluster.users[m]: round(float(there[m]), 6) for m in largest(use)[:5]}


def sentences(one: Why, mechanism: str) -> list[str]:
    """Sentences that state an explanation."""
    wanted = "no limit" if one.wanted is None else f"{one.wanted:g}"
    ending = f" ({one.leaving:g} of them are ending)" if one.leaving else ""
    waits = "; ".join(f"{tasks:g} {reason.rstrip('.') or 'for room'}" for reason, tasks in one.waiting.items())
    due = f"{one.entitled:.4g} tasks ({one.share_entitled:.1%}) under {mechanism} at weight {one.weight:.4g}"
    said = [
        f"{one.user} runs {one.running:.5g} ({one.share:.1%} of the cluster){ending}, wants {wanted}, and is "
        f"entitled to {due}.",
        *[f"Waiting, by the system's own reason: {waits}."] * bool(waits),
        *(f"Cannot run and not counted as wanted: {tasks:g}, {reason.rstrip('.')}."
          for reason, tasks in one.capped.items()),
    ]  # fmt: skip
    for stage in one.stages:
        reasons = "; ".join(f"{user} ({stage.limited_by[user]})" for user in stage.users[:_NAMED])
        more = f" and {len(stage.users) - _NAMED} more of it" if len(stage.users) > _NAMED else ""
        others = f"{stage.others} {'other user' if stage.others == 1 else 'others'}" if stage.others else ""
        verb = "stops" if len(stage.users) + stage.others == 1 else "stop"
        said.append(f"At level {stage.level:.3g} {verb} {' and '.join(filter(None, (reasons + more, others)))}.")
    said.append(f"Its entitlement is limited by {one.entitled_limited_by}. What holds its next task: {one.held_by}.")
    if one.shortfall:
        named = ", ".join(f"{user} {tasks:g}" for user, tasks in one.holders.items())
        most = f"; on its nodes run most of what it needs: {named}" if named else ""
        said.append(f"It is {one.shortfall:.4g} below{most}.")
    else:
        said.append("It lacks no whole task of its entitlement.")
    following = (
        f"{one.starts} of its tasks start, after {one.starts_before} of others"
        if one.starts
        else "none of its tasks starts"
    )
    said.append(f"If nothing is stopped, {following}.")
    for each in one.what_if:
        more = f"{abs(each.starts or 0):g} {'more' if (each.starts or 0) > 0 else 'fewer'} of its tasks start"
        at_once = f"; {more} if nothing is stopped" if each.starts else ""
        said.append(f"With {each.change}: entitled to {each.entitled:.4g}{at_once}.")
    return said
