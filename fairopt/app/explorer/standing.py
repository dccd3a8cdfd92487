"""The standing of users: what they run, want and are entitled to, what holds them, what more would buy whom.

Everything but the verdict is a frame: users are rows of `users`, namespaces or accounts of `groups`, resources of
`resources`, changes under a what-if of `changes`. Words for people are in `fairopt.app.explorer.report`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.errors import DataError, FairoptError
from ...base.libraries import pd
from ...base.names import listed, some
from ...model._arrays import Array, Mask
from ...model.cluster import Cluster
from ...result.allocation import Allocation
from ...result.holds import holds
from ...study import metrics
from .edits import MOST_SERVERS, Edited, Start, State, alpha, number
from .session import Session, margins, summed
from .view import SHOWN, held_texts, words

if TYPE_CHECKING:
    from ...workloads import Snapshot


#: Mechanisms whose entitlements are compared; the one of the state comes first.
COMPARED = ("drfh", "tsf", "ps-dsf", "alphapf-vds(alpha=1)", "alphapf-vds(alpha=3)")
#: What more of a resource would buy is found for this part more of it.
MORE = 0.1
_FORMS = "weight.NAME=NUMBER, alpha=NUMBER, nodes.NAME=+NUMBER (or -NUMBER, or =NUMBER for so many)"


@dataclass(frozen=True, eq=False)
class Standing:
    """A report.

    Attributes
    ----------
    session : what it is of; its state is the one before the what-if
    verdict : is what runs fair? Empty where that is not known
    users : by user: group, running, wanted, weight, an entitlement in tasks per mechanism; satisfaction, below, held
        by and could give of what runs, else held by of the answer
    groups : by group: users, running, wanted, weight, entitled, below, and its share of the cluster, now and entitled
    resources : by resource: used, nodes where it is used up, what a tenth more would add in tasks, and for whom
    margins : by kind of node and resource: tasks that 1% more would add, and for whom, by derivatives of the answer
    margins_note : what has to be known of these
    changes : by user, under the what-if: running, entitled before and after; None without one
    measures : of what runs, of the answer, and of that after the what-if
    requested : the what-if
    notes : what has to be known: what the source left out, the certificate of the answer
    """

    session: Session
    verdict: tuple[str, ...]
    users: pd.DataFrame
    groups: pd.DataFrame
    resources: pd.DataFrame
    margins: pd.DataFrame
    margins_note: str
    changes: pd.DataFrame | None
    measures: pd.DataFrame
    requested: tuple[str, ...]
    notes: tuple[str, ...]


def standing(
    cluster: Cluster,
    state: State | None = None,
    *,
    source: str = "cluster",
    snapshot: Snapshot | None = None,
    requested: Sequence[str] = (),
    policy: str | None = None,
    compared: Sequence[str] = COMPARED,
) -> Standing:
    """A report on a cluster, by default on alphaPF-VDS at alpha = 1.

    Parameters
    ----------
    snapshot : what the cluster is of: what runs, and what the source left out
    requested : changes, such as `weight.research=2`
    policy : a mechanism that would take the place of the state's
    compared : mechanisms whose entitlements stand beside those of the state's

    Raises
    ------
    DataError
        A change that cannot be made, or a mechanism that this cluster does not fit.
    """
    session = Session(cluster, state or State(), source, None if snapshot is None else snapshot.running)
    first = session.state
    then = what_if(session.start, first, requested)
    if policy is not None:
        then = replace(then, mechanism=policy)
    edited, found = session.edited(first), session.allocation(first)
    entitled, failed = _entitlements(session, edited, found, compared)
    runs = session.runs(edited)
    holding = (held_texts(found, holds(found)), [""] * len(found.arrays.user_tasks))
    if runs is not None and snapshot is not None:
        holding = held_now(runs, snapshot.gated)
    users = _users(session.start, edited, found, entitled, runs, *holding)
    notes = [*_told(snapshot, runs), words(found.certificate, found.tol), *failed]
    changes, after = None, None
    if requested or policy is not None:
        after = session.allocation(then)
        changes = _changes(session.start, found, after, runs)
        notes.append(f"After the change: {words(after.certificate, after.tol)}")
        requested = (*requested, *([f"{after.mechanism} in place of {found.mechanism}"] if policy is not None else []))
    more, note = margins(session.start, edited, found)
    return Standing(
        session,
        () if runs is None else verdict(runs, found.mechanism, entitled, *holding),
        users,
        _groups(session.start, edited, found, users),
        _resources(session, first, found, runs),
        pd.DataFrame(more, columns=["nodes", "count", "resource", "tasks more", "for"]),
        note,
        changes,
        _measures(runs, found, after),
        tuple(requested),
        tuple(notes),
    )


def _entitlements(
    session: Session, edited: Edited, found: Allocation, compared: Sequence[str]
) -> tuple[dict[str, Array], list[str]]:
    """Tasks of users by mechanism; what fails is said."""
    made, failed = {found.mechanism: found.arrays.user_tasks}, []
    for name in compared:
        mechanism = session.mechanism(replace(session.state, mechanism=name))
        if str(mechanism) in made:
            continue
        try:
            made[str(mechanism)] = mechanism.solve(edited.cluster).arrays.user_tasks
        except FairoptError as error:
            failed.append(f"{mechanism}: {error}")
    return made, failed


def _told(snapshot: Snapshot | None, runs: Allocation | None) -> list[str]:
    """Notes: what the source left out, and running tasks that do not fit."""
    if snapshot is None:
        return []
    dropped = ", ".join(f"{what}: {count:,}" for what, count in snapshot.dropped.items())
    return [*([f"Left out: {dropped}."] * bool(dropped)), *snapshot.notes, *([] if runs is None else unfit(runs))]


def _users(
    start: Start, edited: Edited, found: Allocation, entitled: Mapping[str, Array], runs: Allocation | None,
    held: list[str], rooms: list[str],
) -> pd.DataFrame:  # fmt: skip
    cluster = edited.cluster
    frame: dict[str, Any] = {"user": list(cluster.users), "group": [start.groups[n] for n in edited.user_of]}
    if runs is not None:
        frame["running"] = runs.arrays.user_tasks
    frame |= {"wanted": cluster.max_tasks, "weight": cluster.weight} | dict(entitled)
    if runs is None:
        return pd.DataFrame(frame | {"held by": held})
    frame["satisfaction"] = metrics.satisfactions(runs, found)
    frame["below"], above = metrics.owed(runs, found)
    frame["held by"] = held
    frame["could give"] = givers(runs, metrics.complaining(runs, found), above, rooms)
    return pd.DataFrame(frame)


def _groups(start: Start, edited: Edited, found: Allocation, users: pd.DataFrame) -> pd.DataFrame:
    """Sums of users by group, and each group's largest share of any resource, now and as entitled."""
    cluster, entitled = edited.cluster, found.arrays.user_tasks
    whole = np.where(cluster.pooled_capacity > 0, cluster.pooled_capacity, np.inf)
    known = users.assign(users=1, entitled=entitled)
    columns = ("users", "weight", "running", "wanted", "entitled", "below")
    how = {name: "max" if name == "weight" else "sum" for name in columns if name in known}
    made = known.groupby("group", sort=False).agg(how)

    def share(tasks: Array) -> Array:
        use = pd.DataFrame(tasks[:, None] * cluster.demand).groupby(users["group"], sort=False).sum()
        return np.asarray((use.to_numpy() / whole).max(axis=1))

    if "running" in made:
        made.insert(4, "share now", share(users["running"].fillna(0).to_numpy()))
    made.insert(made.columns.get_loc("entitled") + 1, "share entitled", share(entitled))
    return made.reset_index()


def _resources(session: Session, state: State, found: Allocation, runs: Allocation | None) -> pd.DataFrame:
    """Use, where it is used up, and who would gain most of a tenth more on every node that has any."""
    cluster, rows = found.cluster, []
    use = found.tasks.T @ cluster.demand
    there = cluster.capacity > 0
    # A resource of a node is used up if less than this part is left.
    full = there & (use >= cluster.capacity * (1 - 1e-6))
    for r, name in enumerate(cluster.resources):
        capacity = cluster.capacity.copy()
        capacity[:, r] *= 1 + MORE
        row: dict[str, Any] = {"resource": name}
        row |= {} if runs is None else {"used now": float(runs.arrays.utilization[r])}
        row |= {"used": float(found.arrays.utilization[r])}
        row |= {"nodes": int(there[:, r].sum()), "used up on": int(full[:, r].sum()), "tasks more": 0.0, "for": ""}
        if full[:, r].any():
            more = session.mechanism(state).solve(cluster.replace(capacity=capacity)).arrays.user_tasks
            gain = more - found.arrays.user_tasks
            # Two answers have the same tasks if these differ by at most three times the tolerance.
            least = 3.0 * found.tol * float(found.arrays.user_tasks.sum())
            row["tasks more"], row["for"] = summed(cluster.users, gain, least)
        rows.append(row)
    return pd.DataFrame(rows)


def _changes(start: Start, first: Allocation, then: Allocation, runs: Allocation | None) -> pd.DataFrame:
    """Tasks of all who are there before or after, the largest change first."""
    states = {"running": runs, "entitled": first, "after": then}
    made = pd.DataFrame({name: one.user_tasks for name, one in states.items() if one is not None}).fillna(0.0)
    made = made.reindex([user for user in start.cluster.users if user in made.index])
    made.insert(0, "group", pd.Series(start.groups, start.cluster.users))
    made = made.assign(change=made["after"] - made["entitled"]).rename_axis("user").reset_index()
    return made.reindex(made["change"].abs().sort_values(ascending=False, kind="stable").index)


def _measures(runs: Allocation | None, found: Allocation, after: Allocation | None) -> pd.DataFrame:
    """Measures of each state: those of answers, and the distance of running tasks from the answer."""
    rows = []
    for state, one in (("running", runs), ("entitled", found), ("after", after)):
        if one is not None:
            numbers = {
                title: float(metrics.MEASURES[name](one)) for name, title in SHOWN.items() if name not in metrics.DUE
            }
            if runs is not None and one.cluster == runs.cluster:
                numbers |= {SHOWN[name]: measure(one, found) for name, measure in metrics.DUE.items()}
            rows.append({"state": state, "mechanism": "" if one is runs else one.mechanism} | numbers)
    return pd.DataFrame(rows)


def what_if(start: Start, state: State, requested: Sequence[str]) -> State:
    """The state after changes, one after the other.

    A name of `weight` is a namespace or account (all its users) or a user; of `nodes` a server, or the name of several
    that are alike.

    Raises
    ------
    DataError
        No such form or name, or no such number.
    """
    edits, at = dict(state.edits), state.alpha
    for text in requested:
        key, equals, value = text.partition("=") if re.search(r"==|=[+-]", text) else text.rpartition("=")
        kind, _, name = key.partition(".")
        if kind == "alpha" and equals and not name:
            at = alpha(value)
        elif kind == "weight" and name:
            weight = number(value, ("weight",), f"the weight in {text!r}")
            edits |= {f"users/{n}/weight": weight for n in _named_users(start, name)}
        elif kind == "nodes" and name:
            entry = _entry(start, name)
            edits[f"servers/{entry}/count"] = _count(start, edits, entry, value, text)
        else:
            raise DataError(f"--what-if {text}: write {_FORMS}")
    return State(state.mechanism, at, edits)


def _named_users(start: Start, name: str) -> list[int]:
    for names in (start.groups, start.cluster.users):
        if found := [n for n, one in enumerate(names) if one == name]:
            return found
    raise DataError(
        f"there is no namespace, account or user {name!r}; there are {some([*dict.fromkeys(start.groups)])}"
    )


def _entry(start: Start, name: str) -> int:
    if name in start.names:
        return start.names.index(name)
    if name in start.cluster.servers:
        return int(start.entry_of[start.cluster.servers.index(name)])
    raise DataError(f"there are no nodes {name!r}; there are {some(start.names)}")


def _count(start: Start, edits: dict[str, Any], entry: int, value: str, text: str) -> int:
    before = int(edits.get(f"servers/{entry}/count", start.counts[entry]))
    found = re.fullmatch(r"([+=-]?)(\d{1,9})", value)
    if found is None:
        raise DataError(f"--what-if {text}: {value!r} is no number of nodes; write +4, -4 or =4")
    size = int(found[2])
    made = {"+": before + size, "-": before - size}.get(found[1], size)
    if not 0 <= made <= MOST_SERVERS:
        raise DataError(f"--what-if {text}: that would be {made} nodes, of {before} now")
    return made


#: What of a resource is left may lack this part of a task: sums of what runs are rounded.
_ROUNDED = 1e-9


def verdict(
    runs: Allocation, mechanism: str, entitled: Mapping[str, Array], held: Sequence[str], rooms: Sequence[str]
) -> tuple[str, ...]:
    """A sentence under the mechanism, and one on the others; `held`, `rooms`: what holds each user, and idle room."""
    cluster, due = runs.cluster, entitled[mechanism]
    below, above = metrics.owed(runs, due)
    others = [name for name in entitled if name != mechanism]
    lacks = np.array([metrics.owed(runs, each)[0] > 0 for each in entitled.values()])
    every, either = int(lacks.all(axis=0).sum()), int(lacks.any(axis=0).sum())
    under = " and ".join(filter(None, (", ".join(others[:-1]), *others[-1:])))
    same = f"{'Who is below is the same' if either else 'Nor is anybody below'} under {under}."
    differ = f"Under each of {under} {every} of them are below too; under one or another {either} users are."
    further = [same if every == either else differ] if others else []
    nowhere = [_quoted(cluster.users[n]) for n in np.flatnonzero(~cluster.runnable & (cluster.max_tasks > 0))]
    if nowhere:
        further.append(f"No node may run a task of {listed(nowhere)}.")
    if not below.any():
        met = "" if nowhere or metrics.wanting(runs).any() else ", and everybody has all it wants"
        return (f"Under {mechanism} nobody lacks a whole task of what it is entitled to{met}.", *further)
    n, users = int(in_shares(cluster, below).argmax()), int((below > 0).sum())
    blamed = _largest(in_shares(cluster, above * metrics.complaining(runs, due).any(axis=0)))
    cost = listed([f"{_quoted(cluster.users[j])} by {above[j]:.3g}" for j in blamed])
    who = "is below what it is entitled to:" if users == 1 else "are below what they are entitled to, most of all"
    why = f"although there is {rooms[n]}" if rooms[n] else f"held back by {held[n]}"
    ends = f"above at the cost of others: {cost}" if blamed else "nobody is above at another's cost"
    said = f"{_quoted(cluster.users[n])}, which runs {runs.arrays.user_tasks[n]:g} of {due[n]:.3g} tasks"
    return (f"Under {mechanism} {users} of {len(below)} users {who} {said}, {why}; {ends}.", *further)


def in_shares(cluster: Cluster, tasks: Array) -> Array:
    """Tasks of users as dominant shares; none of who can run nothing."""
    return np.where(cluster.runnable, cluster.dominant_share_per_task, 0.0) * tasks


def _largest(values: Array) -> list[int]:
    """Places of what is above 0, the largest first."""
    return [n for n in np.argsort(-values, kind="stable").tolist() if values[n] > 0]


def _quoted(name: str) -> str:
    return f"'{name}'" if "," in name else name


def held_now(runs: Allocation, gated: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Limit of each user's next task on the nodes as they are, and where there is room for how many."""
    cluster = runs.cluster
    free = cluster.capacity * (1 + _ROUNDED) - runs.tasks.T @ cluster.demand
    held, rooms = [], []
    for n, wants in enumerate(metrics.wanting(runs).tolist()):
        may, needs = cluster.usable[n], cluster.demand[n] > 0
        fits = np.floor((free[may][:, needs] / cluster.demand[n, needs]).min(axis=1, initial=np.inf)).clip(0)
        room, gate = fits.sum(), gated.get(cluster.users[n], 0)
        rooms.append("")
        if not wants:
            held.append("has all its tasks" if may.any() else "nowhere to run")
        elif gate >= cluster.max_tasks[n] - runs.arrays.user_tasks[n]:
            held.append("a gate or a limit of its owner")
        elif room > 0:
            where = np.flatnonzero(may)[fits > 0]
            rooms[-1] = f"idle room for {room:g} on {_nodes(cluster.servers, where.tolist(), len(where))}"
            held.append("nothing: there is idle room")
        else:
            short = free[may] < cluster.demand[n]
            r = int(np.lexsort((-cluster.share_per_task[n], -short.sum(axis=0)))[0])
            where = np.flatnonzero(may)[short[:, r]]
            held.append(f"{cluster.resources[r]} on {_nodes(cluster.servers, where.tolist(), int(may.sum()))}")
    return held, rooms


def _nodes(names: Sequence[str], some: Sequence[int], of: int) -> str:
    if len(some) <= 2:
        return " and ".join(names[i] for i in some)
    return f"all {of} nodes that may run it" if len(some) == of else f"{len(some)} of {of} nodes that may run it"


def givers(runs: Allocation, complains: Mask, above: Array, rooms: Sequence[str]) -> list[str]:
    """Givers of what each user lacks: idle room, and users above their entitlement where it may run."""
    cluster = runs.cluster
    found = []
    for room, row in zip(rooms, complains, strict=True):
        named = [f"{cluster.users[j]} {above[j]:.3g}" for j in _largest(in_shares(cluster, above * row))]
        found.append("; ".join(filter(None, (room, listed(named)))))
    return found


def unfit(runs: Allocation) -> list[str]:
    """Running tasks that do not fit, in words: after a drain, a new taint, a smaller node."""
    cluster = runs.cluster
    use = runs.tasks.T @ cluster.demand
    over = np.argwhere(use > cluster.capacity * (1 + 1e-6))
    stray = np.argwhere((runs.tasks > 0) & ~cluster.usable)
    said = [f"{cluster.resources[r]} of {cluster.servers[i]} ({use[i, r]:.4g} of {cluster.capacity[i, r]:.4g})"
            for i, r in over.tolist()]  # fmt: skip
    lost = [f"{cluster.users[n]} on {cluster.servers[i]} ({runs.tasks[n, i]:g})" for n, i in stray.tolist()]
    heads = {"More runs than there is room for": said, "Tasks run where they may not be started now": lost}
    return [f"{head}: {listed(some)}." for head, some in heads.items() if some]
