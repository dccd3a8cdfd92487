"""Reader of Slurm clusters from the output of `scontrol show nodes --json`, `squeue --json` and `sshare --json`.

Servers are nodes that are neither down nor drained (those that the power saver stopped count, as it starts them when a
job comes), with the resources available to jobs. A user is the set of jobs of an account (or a person) that ask for the
same and may run on the same nodes; a task is the part of a job on one node. What runs holds its allocation, what waits
asks for its request.

What each field means is data in `_slurm_tables`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..base import files
from ..base.errors import DataError
from ..base.names import listed
from . import _slurm_shares
from . import _slurm_tables as tables
from ._slurm_words import MOST, elements, gres, has_features, hosts, number, text, tres, words
from ._snapshot import Amounts, Shape, Snapshot, objects, of_shapes
from .sources import reader

_LAYOUT = "nodes.json (scontrol show nodes --json), jobs.json (squeue --json), perhaps shares.json (sshare --json)"
#: States of nodes that are not available, of `--json` and of the text commands.
_DOWN = {"DOWN", "DRAIN", "DRAINED", "DRAINING", "DYNAMIC_FUTURE", "ERROR", "FAIL", "FAILING", "FUTURE", "INVAL",
         "INVALID", "INVALID_REG", "MAINT", "MAINTENANCE", "NOT_RESPONDING", "NO_RESPOND", "POWER_DRAIN",
         "UNKNOWN"}  # fmt: skip
#: States that the power saver gives and takes; meanwhile a node does not respond, and is available nevertheless.
_ASLEEP = {"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN", "POWER_UP"}
#: Suffixes of states of the text commands.
_MARKS = {"*": "NOT_RESPONDING", "~": "POWERED_DOWN", "#": "POWERING_UP", "%": "POWERING_DOWN", "$": "MAINT"}
#: Requests of jobs that the number of a node must reach.
_AT_LEAST = {"minimum_cpus_per_node": "cpus", "minimum_tmp_disk_per_node": "temporary_disk",
             "sockets_per_node": "sockets", "cores_per_socket": "cores", "threads_per_core": "threads"}  # fmt: skip
#: Generic resources that jobs do not consume.
_FREE = re.compile(r"([^,:\s]+)(?::[^,:]+)?:no_consume")
#: Rounding of sums, relative.
_ROUNDED = 1e-9

Object = Mapping[str, Any]


@reader("slurm", "a Slurm cluster: slurm:DIR with nodes.json, jobs.json, shares.json", folder="slurm")
def slurm(
    directory: str | Path,
    by: Literal["account", "user"] = "account",
    max_tasks: bool = True,
    rng: np.random.Generator | None = None,
) -> Snapshot:
    """Read nodes and jobs as a cluster, with resources `cpu`, `memory` [GiB], and generic ones such as `gres/gpu`.

    A node has its effective CPUs, its memory minus specialized memory, and the generic resources of its `tres` and
    `gres`. A job requests `tres_req_str` and `tres_per_...`, divided by its number of nodes, or by the least number on
    which it fits; elements of job arrays count separately, and up to their throttle. It is eligible on nodes of its
    partitions and reservation with the requested features, among required and without excluded ones.

    Parameters
    ----------
    directory : str or Path
        Folder of `nodes.json`, `jobs.json` and optionally `shares.json`.
    by : str
        Definition of users: "account", weighted by `shares.json`, or "user", the persons of accounts.
    max_tasks : bool
        Limit users to the tasks of their running and pending jobs; otherwise they have no limit.
    rng : Generator, optional
        Not used.

    Raises
    ------
    DataError
        A file is missing or invalid (the message has the node or job), or has no eligible node or job.
    """
    folder = Path(directory)
    nodes_path, jobs_path, shares_path = (folder / f"{name}.json" for name in ("nodes", "jobs", "shares"))
    if not nodes_path.is_file() or not jobs_path.is_file():
        raise DataError(f"{folder} holds no Slurm snapshot; expected {_LAYOUT}")
    nodes, jobs = (objects(_read(path), path.stem, path, f"expected {_LAYOUT}") for path in (nodes_path, jobs_path))
    shares = _rows(_read(shares_path), shares_path) if shares_path.is_file() else []
    return snapshot(nodes, jobs, shares, str(folder), by, max_tasks)


def snapshot(
    nodes: Sequence[Object],
    jobs: Sequence[Object],
    shares: Sequence[Object],
    where: str,
    by: Literal["account", "user"] = "account",
    max_tasks: bool = True,
) -> Snapshot:
    """Build the cluster of these nodes and jobs, with weights by these rows of shares. See `slurm`."""
    report: Counter[str] = Counter()
    available = [_Node.of(node) for node in nodes if _is_available(node, report)]
    if not available:
        raise DataError(f"{where} has no node that jobs may use; of {len(nodes)} all are down or drained")
    live = [job for job in jobs if _phase(job)]
    free = {f"gres/{name}" for node in nodes for name in _FREE.findall(str(node.get("gres")))}
    known = [_Job.of(job, by, free) for job in live]
    if not known:
        raise DataError(f"{where} has no job that runs or waits; of {len(jobs)} all have ended")
    report.update(f"jobs {'pending' if job.phase == 'waits' else 'running'}" for job in known)
    report["jobs that have ended, left out"] = len(jobs) - len(live)
    weights, said = _slurm_shares.weights(shares, {job.path for job in known})
    shapes = _shapes(known, available, weights)
    about = f"Slurm ({Path(where).name}): {{}} users ({by} and shape) on {len(available)} nodes"
    found = of_shapes(
        shapes, [node.name for node in available], [node.has for node in available], max_tasks, about,
        report, ": ", "no node has its partition and features",
        f"{where}: no node may run any of the jobs; look at partitions and features",
    )  # fmt: skip
    names = {node.name for node in available}
    seen = {"nodes": [node for node in nodes if node["name"] in names], "jobs": live, "shares": shares}
    notes = [*found.notes, *said, *_cut(known), *_hidden(available, shapes), *tables.notes(seen)]
    return replace(found, notes=tuple(notes))


def _read(path: Path) -> Any:
    return files.parse_json(files.read(path, "Slurm snapshot"), path)


@dataclass(frozen=True, eq=False)
class _Node:
    """A node: what it has for jobs, and what decides who may use it."""

    name: str
    has: dict[str, float]
    partitions: frozenset[str]
    features: frozenset[str]
    reservation: str
    raw: Object

    @classmethod
    def of(cls, node: Object) -> _Node:
        name = _name(node)
        who = f"node {name}"
        generic = gres(node.get("gres"), who)
        found = dict[str, float](generic) | tres(node.get("tres"), who)
        for what, amount in gres(node.get("gres_drained"), who).items():
            found[what] = max(found.get(what, 0.0) - amount, 0.0)
        cpus = number(node.get("effective_cpus", node.get("cpus")), f"effective_cpus of {who}")
        memory = number(node.get("real_memory"), f"real_memory of {who}")
        less = number(node.get("specialized_memory"), f"specialized_memory of {who}") or 0
        found |= {} if cpus is None else {"cpu": cpus}
        found |= {} if memory is None else {"memory": max(memory - less, 0) / 1024}
        features = words(node.get("features", node.get("active_features")), f"features of {who}")
        return cls(name, found, frozenset(words(node.get("partitions"), f"partitions of {who}")), frozenset(features),
                   text(node.get("reservation"), f"reservation of {who}"), node)  # fmt: skip


def _name(node: Object) -> str:
    found = node.get("name")
    if not isinstance(found, str) or not found:
        raise DataError(f"a node has the name {str(found)[:40]!r}; every node needs one")
    return found


def _is_available(node: Object, report: Counter[str]) -> bool:
    name = _name(node)
    # Slurm 21 lists flags such as DRAIN separately from the base state; the text commands join them by +.
    given = [word for key in ("state", "state_flags") for word in words(node.get(key), f"the {key} of node {name}")]
    state = {word.upper().rstrip("*~#!%$@^-") for one in given for word in one.split("+")}
    state |= {_MARKS[word[-1]] for word in given if word[-1] in _MARKS}
    down = (state & _DOWN) - ({"NOT_RESPONDING", "NO_RESPOND"} if state & _ASLEEP else set())
    if down:
        report["nodes that are down or drained, left out"] += 1
    return not down


@dataclass(frozen=True, eq=False)
class _Job:
    """A job: who, what it asks for in all and on each of its nodes, where, and what it holds."""

    path: tuple[str, ...]  # the account, and the person where users are persons
    who: str
    phase: str  # waits, runs, or leaves
    total: dict[str, float]
    each: dict[str, float]
    nodes: int
    most_nodes: float
    count: int
    throttle: int | None
    cut: bool
    array: int
    partitions: frozenset[str]
    place: tuple[str, ...]
    whole: bool
    reason: str
    holds: dict[str, dict[str, float]] = field(default_factory=dict)  # by node
    split: int = 1  # nodes that it is divided over
    raw: Object = field(default_factory=dict)

    @classmethod
    def of(cls, job: Object, by: str, free: Set[str]) -> _Job:
        who, phase = f"job {str(job.get('job_id'))[:20]}", _phase(job)
        account, person = (str(job.get(key) or "nobody") for key in ("account", "user_name"))
        asked = tres(job.get("tres_req_str"), who)
        now = _count(job, "node_count", who) or 1
        nodes = asked.pop("node", None) or now  # a running job counts the nodes that it got
        if not asked:
            asked = _without_tres(job, who, nodes)
        each, total = _generic(job, who, nodes)
        # Untyped generic resources of `tres_req_str` are those of `tres_per_...`, which have the types.
        total |= {what: amount for what, amount in asked.items() if what not in each}
        count, throttle, cut = elements(job.get("array_task_string"), who)
        if count * max(nodes, now) > MOST:
            raise DataError(f"{who} stands for {count * max(nodes, now):.0f} tasks; at most {MOST} are read")
        limits = [most for most in (_count(job, key, who) for key in ("max_nodes", "tasks")) if most]
        place = [
            text(job.get(key), f"{key} of {who}")
            for key in ("features", "required_nodes", "excluded_nodes", "resv_name")
        ]
        place += [str(_count(job, key, who) or 0) for key in _AT_LEAST]
        made = cls(
            (account, person) if by == "user" else (account,), who, phase,
            {what: amount for what, amount in total.items() if amount and what not in free},
            {what: amount for what, amount in each.items() if what not in free}, int(nodes),
            min(limits, default=np.inf),
            count, int(_count(job, "array_max_tasks", who) or 0) or throttle, cut,
            int(_count(job, "array_job_id", who) or 0),
            frozenset(words(job.get("partition"), f"partition of {who}")), tuple(place),
            bool({"none", "true"} & {*words(job.get("exclusive"), who), *words(job.get("shared"), who)}),
            _reason(job), raw=job,
        )  # fmt: skip
        return made if phase == "waits" else replace(made, holds=_holds(job, who, made))

    @property
    def key(self) -> tuple[Any, ...]:
        """What jobs of one user have in common, except for partitions."""
        return (
            self.path,
            frozenset(self.total.items()),
            frozenset(self.each.items()),
            self.nodes,
            self.place,
            self.whole,
        )


def _phase(job: Object) -> str:
    """`waits`, `runs`, or `leaves` for jobs that still hold resources while they end; '' for those that have ended."""
    state = {word.upper() for word in words(job.get("job_state"), f"job_state of job {str(job.get('job_id'))[:20]}")}
    if state & {"RUNNING", "SUSPENDED"}:
        return "runs"
    return "leaves" if "COMPLETING" in state else "waits" if "PENDING" in state else ""


def _count(job: Object, key: str, who: str) -> float | None:
    return number(job.get(key), f"{key} of {who}")


def _reason(job: Object) -> str:
    """Reason why a job waits, as Slurm states it, with the description if that says more."""
    reason, more = (str(job.get(key) or "").strip("( )") for key in ("state_reason", "state_description"))
    if job.get("hold") is True and tables.reason_class(reason) in ("room", "turn"):
        reason = "JobHeldUser"
    return more if more.startswith(reason) and more else reason


def _without_tres(job: Object, who: str, nodes: float) -> dict[str, float]:
    """CPUs and memory of a job of which `tres_req_str` says nothing."""
    cpus = _count(job, "cpus", who) or (_count(job, "tasks", who) or 1) * (_count(job, "cpus_per_task", who) or 1)
    memory = (_count(job, "memory_per_node", who) or 0) * nodes or (_count(job, "memory_per_cpu", who) or 0) * cpus
    known = any(key in job for key in ("cpus", "tasks"))
    return {"cpu": cpus, "memory": memory / 1024} if known else {}


def _generic(job: Object, who: str, nodes: float) -> tuple[dict[str, float], dict[str, float]]:
    """Generic resources on each node of a job, and in all."""
    tasks, sockets = _count(job, "tasks", who) or nodes, _count(job, "sockets_per_node", who) or 1
    times = {"tres_per_node": 1.0, "tres_per_socket": sockets, "tres_per_job": 1.0,
             "tres_per_task": _count(job, "tasks_per_node", who) or tasks}  # fmt: skip
    found: dict[bool, dict[str, float]] = {True: {}, False: {}}
    for key, number_of in times.items():
        on_each = key in ("tres_per_node", "tres_per_socket") or bool(key == "tres_per_task" and number_of != tasks)
        for what, amount in gres(job.get(key), who).items():
            found[on_each][what] = amount * number_of
    return found[True], {what: amount for what, amount in found[False].items() if what not in found[True]}


def _holds(job: Object, who: str, asks: _Job) -> dict[str, dict[str, float]]:
    """Amounts that a job holds by node: those of `tres_alloc_str`, as `job_resources` and `gres_detail` place them."""
    found = job.get("job_resources")
    resources: Object = found if isinstance(found, Mapping) else {}
    of = resources.get("nodes")
    of = of if isinstance(of, Mapping) else {"list": of, "allocation": resources.get("allocated_nodes")}
    names = hosts(job.get("nodes"), who) or hosts(of.get("list"), who) or [""]
    rows = of.get("allocation") or ()
    rows = [one for one in (rows.values() if isinstance(rows, Mapping) else rows) if isinstance(one, Mapping)]
    parts = {str(one.get("name", one.get("nodename", name))): one for one, name in zip(rows, names, strict=False)}
    weights = {what: [_part(parts.get(name, {}), what, who) for name in names] for what in ("cpu", "memory")}
    detail = job.get("gres_detail")
    detail = detail if isinstance(detail, list) else []
    for k, (_, one) in enumerate(zip(names, detail, strict=False)):
        for what, amount in gres(one, who).items():
            weights.setdefault(what, [0.0] * len(names))[k] = float(amount)
    total = tres(job.get("tres_alloc_str"), who)
    total.pop("node", None)
    asked = asks.total | {what: amount * len(names) for what, amount in asks.each.items()}
    for what in asked.keys() | weights.keys():
        named = sum(weights.get(what, ()))
        if what not in total and (what in asked or what.count(":") == 0) and (named or what in asked):
            total[what] = float(named) or asked[what] * asks.count
    usual = weights["cpu"] if sum(weights["cpu"]) else [1.0] * len(names)
    placed: dict[str, dict[str, float]] = defaultdict(dict)
    for what, amount in total.items():
        if ":" in what and what not in asked:
            continue  # the type that Slurm chose is no wish of the job
        by = weights.get(what, ())
        by = by if sum(by) else usual
        for name, part in zip(names, by, strict=True):
            placed[name][what] = amount * part / sum(by)
    return placed


def _part(row: Object, what: str, who: str) -> float:
    """CPUs (or cores, where they are not counted) or GiB of a job on one node, by a row of `job_resources`."""
    of = f"job_resources of {who}"
    if what == "memory":
        found = row.get("memory", row.get("memory_allocated"))
        return (number(found.get("allocated") if isinstance(found, Mapping) else found, of) or 0.0) / 1024
    found = row.get("cpus", row.get("cpus_used"))
    counted = number(found.get("count") if isinstance(found, Mapping) and "count" in found else found, of)
    return counted or float(str(row.get("sockets")).lower().count("'allocated"))


def _groups(jobs: Sequence[_Job]) -> list[list[_Job]]:
    """Jobs of each user: of equal requests and places, and those of one array.

    A running job names the partition that it got, of those that it was submitted to, as its siblings still do.
    """
    wide: dict[Any, list[frozenset[str]]] = defaultdict(list)
    arrays: dict[tuple[Any, int], _Job] = {}
    for job in sorted(jobs, key=lambda job: job.phase != "waits"):
        arrays.setdefault((job.path, job.array), job)
        if job.phase == "waits" and job.partitions not in wide[job.key]:
            wide[job.key].append(job.partitions)
    found: dict[Any, list[_Job]] = defaultdict(list)
    for job in jobs:
        first = arrays[job.path, job.array] if job.array else job
        places = [place for place in wide[first.key] if first.partitions <= place] if first.phase != "waits" else []
        found[first.key, places[0] if places else first.partitions].append(job)
    return [sorted(group, key=lambda job: job.phase != "waits") for group in found.values()]


def _shapes(jobs: Sequence[_Job], nodes: Sequence[_Node], weights: Mapping[tuple[str, ...], float]) -> list[Shape]:
    """Users: the groups, of which those whose tasks are the same are one."""
    alike: dict[Any, list[_Job]] = defaultdict(list)
    where: dict[Any, tuple[bool, ...]] = {}
    for group in _groups(jobs):
        first = group[0]  # the waiting jobs come first, and state what all of them ask for
        required, excluded = (frozenset(hosts(names, first.who)) for names in first.place[1:3])
        eligible = tuple(_is_eligible(first, node, required, excluded) for node in nodes)
        may = [node for node, yes in zip(nodes, eligible, strict=True) if yes]
        split = _split(first, may)
        asks = {what: amount / split for what, amount in first.total.items()} | first.each
        if first.whole and may:
            asks["cpu"] = max(asks.get("cpu", 0.0), min(node.has.get("cpu", 0.0) for node in may))
        key = first.path, frozenset(asks.items()), first.partitions, first.place
        where[key] = eligible
        alike[key] += [replace(job, split=split) for job in group]
    largest = max(nodes, key=lambda node: node.has.get("cpu", 0.0)).has
    return [_shape(group, dict(key[1]), where[key], weights[key[0]], largest) for key, group in alike.items()]


def _shape(
    group: Sequence[_Job], asks: dict[str, float], eligible: tuple[bool, ...], weight: float, node: Mapping[str, float]
) -> Shape:
    """User of these jobs, of which a task asks for so much; `node` is a typical node."""
    holding = [job for job in group if job.holds]
    parts, allocated = (
        sum(job.split * job.count for job in holding),
        _sum(each for job in holding for each in job.holds.values()),
    )
    # What runs says what a task takes: whole cores, or a node by itself.
    asks |= {what: amount / parts for what, amount in allocated.items() if amount}
    shape = Shape("/".join(group[0].path), {what: amount for what, amount in asks.items() if amount}, eligible, weight)
    for job in holding:
        tasks, sums = job.split * job.count, _sum(job.holds.values())
        most = max(sums, key=lambda what: sums[what] / (node.get(what) or np.inf), default="")
        for name, amounts in job.holds.items():
            part = amounts.get(most, 0.0) / sums[most] if sums[most] else 1.0 / len(job.holds)
            shape.held[name] += tasks * part
        shape.leaving += tasks if job.phase == "leaves" else 0
    running = Counter(job.array for job in group if job.phase == "runs" and job.array)
    for job in group:
        if job.phase == "waits":
            _wait(job, running, shape)
    shape.waiting, shape.capped = +shape.waiting, +shape.capped
    return shape


def _wait(job: _Job, running: Counter[int], shape: Shape) -> None:
    """Count the tasks of a waiting job by its reason; those that no room would start are capped."""
    kind, capped = tables.reason_class(job.reason), job.reason
    start = job.count if kind in tables.WANTED else 0
    if start and job.throttle is not None:  # elements beyond the throttle wait for others of their array
        start, capped = min(start, max(job.throttle - running[job.array], 0)), "JobArrayTaskLimit"
    shape.waiting["" if kind == "room" else job.reason] += start * job.split
    shape.capped[capped] += (job.count - start) * job.split


def _sum(amounts: Iterable[Mapping[str, float]]) -> Amounts:
    """Sum by resource."""
    found: Amounts = Counter()
    for each in amounts:
        found.update(each)
    return found


def _split(job: _Job, nodes: Sequence[_Node]) -> int:
    """Number of nodes of a job: the least one from its request on, for which its part of a node fits one of them."""

    def needed(node: _Node) -> float:
        room = {what: node.has.get(what, 0.0) - job.each.get(what, 0.0) for what in job.total | job.each}
        parts = [job.total[what] / room[what] if room[what] > 0 else np.inf for what in job.total]
        return float(np.ceil(max(parts, default=1.0) - _ROUNDED)) if min(room.values(), default=0.0) >= 0 else np.inf

    least = min(map(needed, nodes), default=np.inf)
    return int(least) if job.nodes < least <= min(job.most_nodes, len(nodes)) else job.nodes


def _is_eligible(job: _Job, node: _Node, required: frozenset[str], excluded: frozenset[str]) -> bool:
    features, reservation = job.place[0], job.place[3]
    reserved = {*words(reservation, job.who)} & {*words(node.reservation, node.name)}
    return (
        (not job.partitions or bool(job.partitions & node.partitions))
        and has_features(features, node.features)
        and node.name not in excluded
        and (not required or node.name in required or len(required) < job.nodes)
        and (bool(reserved) or not (node.reservation or reservation))
        and all(number(node.raw.get(has), has) is None or float(least) <= (number(node.raw[has], has) or 0)
                for least, has in zip(job.place[4:], _AT_LEAST.values(), strict=True))
    )  # fmt: skip


def _cut(jobs: Iterable[_Job]) -> list[str]:
    """Note on arrays whose list of elements Slurm cut off."""
    cut = [job.who for job in jobs if job.cut]
    remedy = "set SLURM_BITSTR_LEN=0 for squeue"
    return (
        [f"The list of elements of an array is cut off, so that more wait than are counted ({remedy}): {listed(cut)}."]
        if cut
        else []
    )


def _hidden(nodes: Iterable[_Node], shapes: Iterable[Shape]) -> list[str]:
    """Note on CPUs that nodes count as allocated and no job of the file holds."""
    held = _sum({name: tasks * shape.asks.get("cpu", 0.0) for name, tasks in shape.held.items()} for shape in shapes)
    lacks = {node.name: (number(node.raw.get("alloc_cpus"), node.name) or 0) - held[node.name] for node in nodes}
    found = [f"{name} {cpus:g}" for name, cpus in lacks.items() if cpus >= 1 - _ROUNDED]
    return (
        [f"CPUs are allocated that no job of jobs.json holds, as if it lacked jobs: {listed(found)}."] if found else []
    )


def _rows(table: Any, path: Path) -> list[Object]:
    """Rows of the associations of `sshare --json`."""
    while isinstance(table, Mapping):
        table = table.get("shares") or []
    return objects({"shares": table}, "shares", path, f"expected {_LAYOUT}")
