"""Data of a report on a cluster: running tasks, entitlements and bottlenecks of users, and effects of changes.

The data are frames by user, by group (namespace or account), and by resource; `fairopt.app.explorer.report` formats
them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...base.errors import DataError, FairoptError
from ...base.libraries import pd
from ...base.names import some
from ...model._arrays import Array
from ...model.cluster import Cluster
from ...result.allocation import Allocation
from ...result.holds import holds
from ...study import metrics
from .edits import MOST_SERVERS, Edited, Start, State, alpha, number
from .queues import shares
from .session import Session, margins, summed
from .verdict import Verdict, judge, unfit
from .view import SHOWN, held_texts, words

if TYPE_CHECKING:
    from ...workloads import Snapshot


#: Mechanisms whose entitlements are compared with those of the mechanism of the state.
COMPARED = ("drfh", "tsf", "ps-dsf", "alphapf-vds(alpha=1)", "alphapf-vds(alpha=3)")
#: Relative increase of a resource for which the additional tasks are computed.
MORE = 0.1
#: CPU seconds for solving changed clusters where the allocation has no derivatives.
_SECONDS = 3.0
_FORMS = "weight.NAME=NUMBER, alpha=NUMBER, nodes.NAME=+NUMBER (or -NUMBER, or =NUMBER for so many)"


@dataclass(frozen=True, eq=False)
class Standing:
    """Data of a report.

    Attributes
    ----------
    session : Session
        Session of the cluster, in the state before the requested changes.
    judged : Verdict or None
        Verdict on the running tasks; None if running tasks are unknown.
    users : DataFrame
        A row for each user, with the columns `user`, `group`, `running`, `wanted`, `weight`, and a column of
        entitlements in tasks for each mechanism. The last columns describe the running tasks (`satisfaction`, `below`,
        `limited by`, `could give`) or, if running tasks are unknown, the allocation (`limited by`).
    groups : DataFrame
        A row for each group: sums over its users, its largest weight, and its dominant shares now and as entitled.
    resources : DataFrame
        A row for each resource: utilization, the number of nodes where it is exhausted, the tasks that 10% more of it
        would add, and the users who gain.
    margins : DataFrame
        A row for each kind of node and resource: the tasks that 1% more would add, and the users who gain.
    margins_note : str
        Remark on how `margins` were found.
    changes : DataFrame or None
        A row for each user: running tasks, and entitlements before and after the changes; None without changes.
    measures : DataFrame
        Measures of the running tasks, of the allocation, and of the allocation after the changes.
    requested : tuple of str
        The changes.
    notes : tuple of str
        Remarks on omitted data of the source, and the certificates in words.
    """

    session: Session
    judged: Verdict | None
    users: pd.DataFrame
    groups: pd.DataFrame
    resources: pd.DataFrame
    margins: pd.DataFrame
    margins_note: str
    changes: pd.DataFrame | None
    measures: pd.DataFrame
    requested: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def verdict(self) -> tuple[str, ...]:
        """Sentences on the fairness of running tasks; empty if running tasks are unknown."""
        return () if self.judged is None else self.judged.sentences


def standing(
    cluster: Cluster,
    state: State | None = None,
    *,
    source: str = "cluster",
    snapshot: Snapshot | None = None,
    requested: Sequence[str] = (),
    policy: str | None = None,
    compared: Sequence[str] = COMPARED,
    tol: float | None = None,
) -> Standing:
    """Compute the data of a report on a cluster, by default for alphaPF-VDS at alpha = 1.

    Parameters
    ----------
    cluster : Cluster
    state : State, optional
        Mechanism, alpha and edits.
    source : str
        Title of the report.
    snapshot : Snapshot, optional
        Source of the cluster, with its running tasks and with counts of omitted data.
    requested : sequence of str
        Changes, such as `weight.research=2` (`what_if`).
    policy : str, optional
        Mechanism after the change; by default the mechanism of the state.
    compared : sequence of str
        Mechanisms whose entitlements are compared with those of the state's mechanism.
    tol : float, optional
        Tolerance of certificates, as in `Mechanism.solve`.

    Raises
    ------
    DataError
        A change is invalid, or a mechanism does not apply to the cluster.
    """
    state = state or State.usual(snapshot)
    session = Session(cluster, state, source, None if snapshot is None else snapshot.running, tol, snapshot)
    first, queues = session.state, session.queues(state)
    then = what_if(session.start, first, requested, () if queues is None else queues.queues)
    if policy is not None:
        then = replace(then, mechanism=policy)
    edited, found = session.edited(first), session.allocation(first)
    entitled, failed = _entitlements(session, found, compared)
    runs = session.runs(edited)
    judged = None if runs is None or snapshot is None else judge(runs, found.mechanism, entitled, snapshot)
    limited = held_texts(found, holds(found)) if judged is None else [one.words for one in judged.held]
    users = _users(session.start, edited, found, entitled, runs, judged, limited)
    notes = [*_source_notes(snapshot, runs, queues is not None), words(found.certificate, found.tol), *failed]
    changes, after = None, None
    if requested or policy is not None:
        after = session.allocation(then)
        changes = _changes(session.start, found, after, runs)
        notes.append(f"After the change: {words(after.certificate, after.tol)}")
        requested = (*requested, *([f"{after.mechanism} in place of {found.mechanism}"] if policy is not None else []))
    more, note = margins(session.start, edited, found, session.mechanism(first), _SECONDS)
    return Standing(
        session,
        judged,
        users,
        _groups(edited.cluster, found, users),
        _resources(session, first, found, runs),
        pd.DataFrame(more, columns=["nodes", "count", "resource", "tasks more", "for"]),
        note,
        changes,
        _measures(runs, found, after),
        tuple(requested),
        tuple(notes),
    )


def _entitlements(session: Session, found: Allocation, compared: Sequence[str]) -> tuple[dict[str, Array], list[str]]:
    """Entitlements in tasks (users,) by mechanism, and the errors of mechanisms that failed."""
    made, failed = {found.mechanism: found.arrays.user_tasks}, []
    for name in compared:
        state = replace(session.state, mechanism=name)
        mechanism = str(session.mechanism(state))
        if mechanism not in made:
            try:
                made[mechanism] = session.allocation(state).arrays.user_tasks
            except FairoptError as error:
                failed.append(f"{mechanism}: {error}")
    return made, failed


def _source_notes(snapshot: Snapshot | None, runs: Allocation | None, queued: bool) -> list[str]:
    """Notes on omitted data, on running tasks that violate constraints, and, if `queued`, on the quotas of queues."""
    if snapshot is None:
        return []
    dropped = ", ".join(f"{what}: {count:,}" for what, count in snapshot.dropped.items())
    return [
        *[f"Left out: {dropped}."] * bool(dropped),
        *snapshot.notes,
        *([] if runs is None else unfit(runs)),
        *(snapshot.tree[1] if queued else ()),
    ]


def _users(
    start: Start, edited: Edited, found: Allocation, entitled: Mapping[str, Array], runs: Allocation | None,
    judged: Verdict | None, limited: list[str],
) -> pd.DataFrame:  # fmt: skip
    cluster = edited.cluster
    frame: dict[str, Any] = {"user": list(cluster.users), "group": [start.groups[n] for n in edited.user_of]}
    if runs is not None:
        frame["running"] = runs.arrays.user_tasks
    frame |= {"wanted": cluster.max_tasks, "weight": cluster.weight} | dict(entitled)
    if runs is None or judged is None:
        return pd.DataFrame(frame | {"limited by": limited})
    frame |= {"satisfaction": metrics.satisfactions(runs, found), "below": judged.below, "limited by": limited}
    return pd.DataFrame(frame | {"could give": [judged.givers(n) for n in range(len(limited))]})


def _groups(cluster: Cluster, found: Allocation, users: pd.DataFrame) -> pd.DataFrame:
    """Sums over the users of each group, the largest weight, and dominant shares of running and entitled tasks."""
    known = users.assign(users=1, entitled=found.arrays.user_tasks)
    columns = ("users", "weight", "running", "wanted", "entitled", "below")
    how = {name: "max" if name == "weight" else "sum" for name in columns if name in known}
    groups = known.groupby("group", sort=False)
    made = groups.agg(how)
    for name, title, place in (("running", "share now", 2), ("entitled", "share entitled", 1)):
        if name in made:
            of = [groups.indices[one] for one in made.index]
            made.insert(made.columns.get_loc(name) + place, title, shares(cluster, known[name].to_numpy(), of))
    return made.reset_index()


def _resources(session: Session, state: State, found: Allocation, runs: Allocation | None) -> pd.DataFrame:
    """Frame by resource: utilization, numbers of nodes, tasks that an increase by `MORE` on all nodes adds, gainers.

    For a resource that is exhausted on no node the increase counts as without effect.
    """
    cluster, rows = found.cluster, []
    use = found.tasks.T @ cluster.demand
    there = cluster.capacity > 0
    # A resource counts as exhausted if at most a millionth is idle, since allocations are feasible to a tolerance.
    full = there & (use >= cluster.capacity * (1 - 1e-6))
    for r, name in enumerate(cluster.resources):
        capacity = cluster.capacity.copy()
        capacity[:, r] *= 1 + MORE
        now = {} if runs is None else {"used now": runs.arrays.utilization[r]}
        row: dict[str, Any] = {"resource": name, **now, "used": found.arrays.utilization[r],
                               "nodes": there[:, r].sum(), "used up on": full[:, r].sum(),
                               "tasks more": 0.0, "for": "nobody"}  # fmt: skip
        if row["used up on"]:
            more = session.mechanism(state).solve(cluster.replace(capacity=capacity), found.tol).arrays.user_tasks
            gain = more - found.arrays.user_tasks
            # Smaller differences between the two allocations are within their tolerances.
            least = 3.0 * found.tol * float(found.arrays.user_tasks.sum())
            row["tasks more"], row["for"] = summed(cluster.users, gain, least)
        rows.append(row)
    return pd.DataFrame(rows)


def _changes(start: Start, first: Allocation, then: Allocation, runs: Allocation | None) -> pd.DataFrame:
    """Tasks of users that exist before or after the change, the largest change first."""
    states = {"running": runs, "entitled": first, "after": then}
    made = pd.DataFrame({name: one.user_tasks for name, one in states.items() if one is not None}).fillna(0.0)
    made = made.reindex([user for user in start.cluster.users if user in made.index])
    made.insert(0, "group", pd.Series(start.groups, start.cluster.users))
    made = made.assign(change=made["after"] - made["entitled"]).rename_axis("user").reset_index()
    return made.reindex(made["change"].abs().sort_values(ascending=False, kind="stable").index)


def _measures(runs: Allocation | None, found: Allocation, after: Allocation | None) -> pd.DataFrame:
    """Measures of running tasks, of the allocation, and of the allocation after the change, a row for each."""
    rows = []
    for state, one in (("running", runs), ("entitled", found), ("after", after)):
        if one is not None:
            row: dict[str, Any] = {"state": state, "mechanism": "" if one is runs else one.mechanism}
            for name, title in SHOWN.items():
                if name not in metrics.DUE:
                    row[title] = float(metrics.MEASURES[name](one))
                elif runs is not None and one.cluster == runs.cluster:
                    row[title] = metrics.DUE[name](one, found)
            rows.append(row)
    return pd.DataFrame(rows)


def what_if(start: Start, state: State, requested: Sequence[str], queues: Collection[str] = ()) -> State:
    """Apply changes to a state, in order.

    `weight.NAME=NUMBER` sets the weight of a user, of all users of a namespace or account, or of one of the `queues` of
    the mechanism; if there are queues, users are leaves of their tree. `nodes.NAME=NUMBER` sets the number of servers
    in an entry of identical servers, given by the name of the entry or of a server; `+NUMBER` and `-NUMBER` change the
    number. `alpha=NUMBER` sets alpha.

    Raises
    ------
    DataError
        The form, a name or a number is invalid.
    """
    edits, at = dict(state.edits), state.alpha
    for text in requested:
        key, equals, value = text.partition("=") if re.search(r"==|=[+-]", text) else text.rpartition("=")
        kind, _, name = key.partition(".")
        if kind == "alpha" and equals and not name:
            at = alpha(value)
        elif kind == "weight" and name:
            weight = number(value, ("weight",), f"the weight in {text!r}")
            users = [] if name in queues else named_users(start, name)
            places = [f"queues/{start.cluster.users[n]}" if queues else f"users/{n}/weight" for n in users]
            edits |= dict.fromkeys(places or [f"queues/{name}"], weight)
        elif kind == "nodes" and name:
            entry = _entry(start, name)
            edits[f"servers/{entry}/count"] = _count(start, edits, entry, value, text)
        else:
            raise DataError(f"--what-if {text}: write {_FORMS}")
    return State(state.mechanism, at, edits)


def named_users(start: Start, name: str) -> list[int]:
    """Indices of the users of a namespace or account, or of the user with this name; `DataError` if there is none."""
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
