"""Reader of Slurm clusters from the output of `scontrol show nodes --json`, `squeue --json` and `sshare --json`.

Servers are nodes that are neither down nor drained, with the resources available to jobs. Nodes that power saving has
stopped are included, as they are started on demand. A user is the set of jobs of an account (or person) with equal
requests and eligible nodes; a task is the part of a job on one node. The demand of running jobs is their allocation,
and the demand of pending jobs their request.

`data/slurm_fields.toml` lists the documented fields, and marks fields that are used and fields that get a note.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..base import files
from ..base.errors import DataError
from ..base.names import listed
from . import _slurm_reasons, _slurm_shares
from ._fields import Fields
from ._fields import table as fields_of
from ._slurm_words import MOST, elements, gres, has_features, hosts, number, shown, text, tres, words
from ._snapshot import Amounts, Shape, Snapshot, objects, of_shapes
from .sources import reader

_LAYOUT = "nodes.json (scontrol show nodes --json), jobs.json (squeue --json), perhaps shares.json (sshare --json)"
#: States of unavailable nodes, in the spelling of `--json` and of the text commands.
_DOWN = {"DOWN", "DRAIN", "DRAINED", "DRAINING", "DRNG", "DYNAMIC_FUTURE", "ERROR", "FAIL", "FAILG", "FAILING", "FUTR",
         "FUTURE", "INVAL", "INVALID", "INVALID_REG", "MAINT", "MAINTENANCE", "NOT_RESPONDING", "NO_RESPOND",
         "POWER_DRAIN", "UNK", "UNKNOWN"}  # fmt: skip
#: States of power saving, in which a node does not respond although it is available: it is started on demand.
_ASLEEP = {"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN", "POWER_UP"}
_SILENT = {"NOT_RESPONDING", "NO_RESPOND"}
#: Requests that determine the eligible nodes of a job.
_PLACES = ("features", "required_nodes", "excluded_nodes", "resv_name")
#: Suffixes of node states in the text commands, with the state that each stands for.
_MARKS = {"*": "NOT_RESPONDING", "~": "POWERED_DOWN", "#": "POWERING_UP", "%": "POWERING_DOWN", "$": "MAINT"}
#: Requests that are lower bounds on a count of the node, with the field of that count.
_AT_LEAST = {"minimum_cpus_per_node": "cpus", "minimum_tmp_disk_per_node": "temporary_disk",
             "sockets_per_node": "sockets", "cores_per_socket": "cores", "threads_per_core": "threads"}  # fmt: skip
#: Relative tolerance for rounding errors of sums.
_ROUNDED = 1e-9

Object = Mapping[str, Any]


@reader("slurm", "a Slurm cluster: slurm:DIR with nodes.json, jobs.json, shares.json", folder="slurm")
def slurm(
    directory: str | Path,
    by: Literal["account", "user"] = "account",
    max_tasks: bool = True,
    rng: np.random.Generator | None = None,
) -> Snapshot:
    """Read nodes and jobs as a cluster with `cpu`, `memory` [GiB], and generic resources such as `gres/gpu`.

    A node has its effective CPUs, its memory minus specialized memory, and the generic resources of its `tres` and
    `gres`. A job requests `tres_req_str` and `tres_per_...`, divided by its number of nodes, or by the smallest number
    of nodes on which it fits. Every element of a job array counts as a job, up to the throttle of the array. A job is
    eligible on the nodes of its partitions and reservation that have the requested features; it is restricted to its
    required nodes, if any, and excluded nodes are omitted.

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
    """Build the cluster of `nodes` and `jobs`, with weights from `shares`; `where` names the source.

    Raises `DataError` as `slurm` does.
    """
    seen = {"nodes": [node for node in nodes if _is_available(node)], "jobs": [job for job in jobs if _phase(job)]}
    available = [_Node.of(node) for node in seen["nodes"]]
    if not available:
        raise DataError(f"{where} has no node that jobs may use; of {len(nodes)} all are down or drained")
    known = [_Job.of(job, by) for job in seen["jobs"]]
    if not known:
        raise DataError(f"{where} has no job that runs or waits; of {len(jobs)} all have ended")
    report = Counter(f"jobs {'pending' if job.phase == 'waits' else 'running'}" for job in known)
    report["nodes that are down or drained, left out"] = len(nodes) - len(available)
    report["jobs that have ended, left out"] = len(jobs) - len(known)
    shapes = _shapes(known, available, bool(shares))
    queues = _slurm_shares.queues(shares, [shape.queue for shape in shapes if shape.queue])
    unknown = {job.path[0] for job in known} - {str(row.get("name")) for row in shares}
    about = f"Slurm ({Path(where).name}): {{}} users ({by} and shape) on {len(available)} nodes"
    found = of_shapes(
        shapes, [node.name for node in available], [node.has for node in available], max_tasks, about,
        report, ": ", "no node has its partition and features",
        f"{where}: no node may run any of the jobs; look at partitions and features", queues,
    )  # fmt: skip
    cut = [f"job {job.get('job_id')}" for job in seen["jobs"] if "..." in str(job.get("array_task_string"))]
    said = {
        "Not in shares.json, and counted with 1 share": sorted(unknown) if shares else [],
        "Elements of an array are cut off, and not counted (SLURM_BITSTR_LEN=0 shows all)": cut,
    }
    more = [f"{what}: {listed(whose)}." for what, whose in said.items() if whose]
    return replace(found, notes=(*found.notes, *more, *_unused({**seen, "shares": shares})))


def _read(path: Path) -> Any:
    return files.parse_json(files.read(path, "Slurm snapshot"), path)


@dataclass(frozen=True, eq=False)
class _Node:
    """A node: capacity available to jobs, and the data that determine which jobs may use it."""

    name: str
    has: dict[str, float]
    partitions: frozenset[str]
    features: frozenset[str]
    reservations: frozenset[str]
    sizes: tuple[float, ...]  # in the order of `_AT_LEAST`

    @classmethod
    def of(cls, node: Object) -> _Node:
        read = _reading(node, f"node {_name(node)}")
        found = dict[str, float](read(gres, "gres")) | read(tres, "tres")
        for what, amount in read(gres, "gres_drained").items():
            found[what] = max(found.get(what, 0.0) - amount, 0.0)
        cpus, memory = read(number, "effective_cpus", "cpus"), read(number, "real_memory")
        found |= {} if cpus is None else {"cpu": cpus}
        if memory is not None:
            found["memory"] = max(memory - (read(number, "specialized_memory") or 0), 0) / 1024
        sizes = (read(number, key) for key in _AT_LEAST.values())
        return cls(
            _name(node), found, frozenset(read(words, "partitions")),
            frozenset(read(words, "features", "active_features")), frozenset(read(words, "reservation")),
            tuple(np.inf if size is None else size for size in sizes),
        )  # fmt: skip


def _name(node: Object) -> str:
    found = node.get("name")
    if not isinstance(found, str) or not found:
        raise DataError(f"a node has the name {str(found)[:40]!r}; every node needs one")
    return found


def _reading(row: Object, who: str) -> Callable[..., Any]:
    """Function that parses the first of several fields that the record has; errors name field and record."""
    return lambda parse, *keys: parse(next((row[key] for key in keys if key in row), None), f"{keys[0]} of {who}")


def _is_available(node: Object) -> bool:
    read = _reading(node, f"node {_name(node)}")
    # Slurm 21 lists flags such as DRAIN separately from the base state; the text commands join them by +.
    given = [*read(words, "state"), *read(words, "state_flags")]
    state = {word.upper().rstrip("*~#!%$@^-") for one in given for word in one.split("+")}
    state |= {_MARKS.get(word[-1], "") for word in given}
    return not (state & _DOWN) - (_SILENT if state & _ASLEEP else set())


@dataclass(frozen=True, eq=False)
class _Job:
    """A job: owner, total and per-node request, placement constraints, and allocation by node."""

    path: tuple[str, ...]  # the account, and also the person if users are persons
    who: str
    phase: str
    total: Amounts
    each: Amounts
    nodes: int  # 0 for a running job, whose requested number is unknown
    most_nodes: float
    count: int
    throttle: float | None
    array: float
    partitions: frozenset[str]
    place: tuple[str, ...]
    reason: str
    holds: Mapping[str, Amounts] = field(default_factory=dict)
    split: int = 1  # number of nodes among which the job is divided

    @classmethod
    def of(cls, job: Object, by: str) -> _Job:
        who, phase = f"job {str(job.get('job_id'))[:20]}", _phase(job)
        read = _reading(job, who)
        names = [str(job.get(key) or "nobody") for key in ("account", "user_name")]
        asked, now = read(tres, "tres_req_str"), read(number, "node_count") or 1
        nodes = asked.pop("node", 0.0) or (now if phase == "waits" else 0.0)
        each, total = _generic(read, nodes or now)
        # `tres_per_...` is preferred for generic resources, since `tres_req_str` omits their types.
        total |= {what: amount for what, amount in asked.items() if amount and what not in each}
        count, throttle = read(elements, "array_task_string")
        if count * max(nodes, now) > MOST:
            raise DataError(f"{who} stands for {count * max(nodes, now):.0f} tasks; at most {MOST} are read")
        limits = [most for most in (read(number, "max_nodes"), read(number, "tasks")) if most]
        alone = re.search("none|true", f"{job.get('exclusive') or ''}{job.get('shared') or ''}", re.IGNORECASE)
        made = cls(
            tuple(names if by == "user" else names[:1]), who, phase, total, each, int(nodes),
            min(limits, default=np.inf), count, read(number, "array_max_tasks") or throttle,
            read(number, "array_job_id") or 0, frozenset(read(words, "partition")),
            (*(read(text, key) for key in _PLACES), "alone" if alone else "",
             *(str(read(number, key) or 0) for key in _AT_LEAST)),
            _reason(job),
        )  # fmt: skip
        return made if phase == "waits" else replace(made, holds=_holds(job, made, int(nodes or now)))

    @property
    def key(self) -> tuple[Any, ...]:
        """Data that distinguish users, other than partitions and the number of nodes."""
        return self.path, frozenset(self.total.items()), frozenset(self.each.items()), self.place


def _phase(job: Object) -> str:
    """Phase of a job: `waits`, `runs`, `leaves` (it ends, and still uses resources), or '' if it has ended."""
    state = {word.upper() for word in _reading(job, f"job {str(job.get('job_id'))[:20]}")(words, "job_state")}
    if state & {"RUNNING", "SUSPENDED"}:
        return "runs"
    return "leaves" if "COMPLETING" in state else "waits" if "PENDING" in state else ""


def _reason(job: Object) -> str:
    """Reason why a job is pending, as stated by Slurm, with the description if it has additional information."""
    reason, more = (str(job.get(key) or "").strip("( )") for key in ("state_reason", "state_description"))
    if job.get("hold") is True and _slurm_reasons.reason_class(reason) in _slurm_reasons.WANTED:
        reason = "JobHeldUser"
    return more if more.startswith(reason) else reason


def _generic(read: Callable[..., Any], nodes: float) -> tuple[Amounts, Amounts]:
    """Generic resources of a job, whose fields `read` parses: per node, and in total."""

    def times(key: str, number_of: float) -> Amounts:
        return Counter({what: amount * number_of for what, amount in read(gres, key).items()})

    of_node = read(number, "tasks_per_node") or 0.0
    each = times("tres_per_node", 1) + times("tres_per_socket", read(number, "sockets_per_node") or 1)
    tasks = 0.0 if of_node else read(number, "tasks") or nodes
    return each + times("tres_per_task", of_node), times("tres_per_job", 1) + times("tres_per_task", tasks)


def _holds(job: Object, asks: _Job, nodes: int) -> dict[str, dict[str, float]]:
    """Allocation of a job by node: the totals of `tres_alloc_str`, divided as in `job_resources` and `gres_detail`."""
    parts = _by_node(job, asks.who)
    named, total = _sum([*parts.values()]), _reading(job, asks.who)(tres, "tres_alloc_str")
    asked = asks.total | {what: amount * nodes for what, amount in asks.each.items()}
    # A type that Slurm chose, such as `gres/gpu:a100`, is part of the demand only if the job requested a type.
    kept = sorted(what for what in {*asked, *named, *total} - {"node"} if what in asked or ":" not in what)
    total = {what: amount for what in kept if (amount := total.get(what) or named[what] or asked.get(what, 0.0))}

    def part(amounts: Amounts, what: str) -> float:
        """Part of a node in the total of a resource: by its own amounts, by CPUs if it has none, or equal parts."""
        by = what if named[what] else "cpu"
        return float(amounts[by] / named[by]) if named[by] else 1 / len(parts)

    return {name: {what: amount * part(amounts, what) for what, amount in total.items()}
            for name, amounts in parts.items()}  # fmt: skip


def _by_node(job: Object, who: str) -> dict[str, Amounts]:
    """Amounts that `job_resources` and `gres_detail` of a job state, by node; one node "" if they name none."""
    found, detail = job.get("job_resources"), job.get("gres_detail")
    of = found.get("nodes") if isinstance(found, Mapping) else None
    if not isinstance(of, Mapping):  # the format before Slurm 24.05
        of = {"list": of, "allocation": found.get("allocated_nodes") if isinstance(found, Mapping) else None}
    read = _reading({**job, "list": of.get("list")}, who)
    names = read(hosts, "nodes") or read(hosts, "list") or [""]
    rows = of.get("allocation")
    rows = [*rows.values()] if isinstance(rows, Mapping) else rows if isinstance(rows, list) else []
    rows = [row for row in rows if isinstance(row, Mapping)]
    by_name = {str(row.get("name", row.get("nodename", name))): row for row, name in zip(rows, names, strict=False)}
    parts: list[Amounts] = [Counter(_row(by_name.get(name, {}), who)) for name in names]
    for amounts, one in zip(parts, detail if isinstance(detail, list) else (), strict=False):
        amounts.update(gres(one, f"gres_detail of {who}"))
    return dict(zip(names, parts, strict=True))


def _row(row: Object, who: str) -> dict[str, float]:
    """CPUs (or cores, where CPUs are not counted) and GiB of a job on one node, by a row of `job_resources`."""
    cpus, memory = row.get("cpus", row.get("cpus_used")), row.get("memory", row.get("memory_allocated"))
    counted = number(cpus.get("count") if isinstance(cpus, Mapping) and "count" in cpus else cpus, f"cpus of {who}")
    allocated = number(memory.get("allocated") if isinstance(memory, Mapping) else memory, f"memory of {who}") or 0
    return {"cpu": counted or str(row.get("sockets")).lower().count("'allocated"), "memory": allocated / 1024}


def _groups(jobs: Sequence[_Job]) -> list[list[_Job]]:
    """Group jobs with equal requests and placement constraints; pending jobs come first in each group.

    The elements of a job array are in one group. A running job states the assigned partition and number of nodes, not
    the requested partitions and number. It therefore joins a group of pending jobs with the same key, if there is such
    a group, whose requested partitions include the assigned partition and whose number of nodes agrees.
    """
    wide: dict[Any, list[tuple[frozenset[str], int]]] = defaultdict(list)
    arrays: dict[Any, _Job] = {}
    order = sorted(jobs, key=lambda job: job.phase != "waits")
    for job in order:
        arrays.setdefault((job.path, job.array or id(job)), job)
        if job.phase == "waits":
            wide[job.key].append((job.partitions, job.nodes))
    found: dict[Any, list[_Job]] = defaultdict(list)
    for job in jobs:  # `jobs` in place of `order`, so that users are in the order of the file
        first = arrays[job.path, job.array or id(job)]
        alike = [one for one in wide[first.key] if first.partitions <= one[0] and first.nodes in (0, one[1])]
        own = first.partitions, first.nodes
        found[first.key, own if own in alike or not alike else alike[0]].append(job)
    return [sorted(group, key=lambda job: job.phase != "waits") for group in found.values()]


def _shapes(jobs: Sequence[_Job], nodes: Sequence[_Node], queued: bool) -> list[Shape]:
    """Form users from groups of jobs, merging groups of one account with equal tasks; `queued` if shares are known."""
    alike: dict[Any, list[_Job]] = defaultdict(list)
    places: dict[Any, tuple[tuple[bool, ...], list[dict[str, float]]]] = {}
    for group in _groups(jobs):
        first = group[0]
        where = first.partitions, first.place, first.nodes
        if where not in places:
            required, excluded = (frozenset(hosts(names, f"nodes of {first.who}")) for names in first.place[1:3])
            eligible = tuple(_is_eligible(first, node, required, excluded) for node in nodes)
            kinds = {frozenset(node.has.items()) for node, yes in zip(nodes, eligible, strict=True) if yes}
            places[where] = eligible, [dict(kind) for kind in kinds]
        eligible, may = places[where]
        split = _split(first, may, sum(eligible))
        asks = {what: amount / split for what, amount in first.total.items()} | first.each
        if "alone" in first.place and may:
            asks["cpu"] = max(asks.get("cpu", 0.0), min(has.get("cpu", 0.0) for has in may))
        alike[first.path, frozenset(asks.items()), first.partitions, first.place, eligible] += [
            replace(job, split=split) for job in group
        ]
    most: Amounts = Counter()
    for node in nodes:
        most |= Counter(node.has)  # the maximum by resource
    shapes = [_shape(group, dict(key[1]), key[-1], most) for key, group in alike.items()]
    for shape, (path, *_) in zip(shapes, alike, strict=True):
        shape.queue = ("person" if len(path) > 1 else "account", *path) if queued else None
    return shapes


def _shape(group: Sequence[_Job], asks: dict[str, float], eligible: tuple[bool, ...], node: Amounts) -> Shape:
    """Form a user from a group of jobs with the demand `asks` per task; `node` is the largest capacity by resource."""
    parts, waits = sum(job.split * job.count for job in group if job.holds), any(job.phase == "waits" for job in group)
    for what, amount in _sum(each for job in group for each in job.holds.values()).items():
        # Running jobs show the actual use of a task, which may be rounded up to whole cores or a whole node.
        asks[what] = max(amount / parts, asks.get(what, 0.0) * waits)
    shape = Shape("/".join(group[0].path), asks, eligible)
    running = Counter(job.array for job in group if job.phase == "runs" and job.array)
    for job in group:
        sums = _sum(job.holds.values())
        most = max(sums, key=lambda what: sums[what] / (node[what] or np.inf), default="")
        tasks = {name: amounts[most] / asks[most] for name, amounts in job.holds.items() if sums}
        shape.held.update(tasks)
        shape.leaving += sum(tasks.values()) if job.phase == "leaves" else 0
        if job.phase != "waits":
            continue
        # Tasks that could not start even on free nodes count as capped, since they are no demand now.
        kind, capped = _slurm_reasons.reason_class(job.reason), job.reason
        # The throttle of an array decides, and not its stated reason, which may date from before other elements ended.
        stale = job.throttle is not None and job.array and job.reason.startswith("JobArrayTaskLimit")
        start = job.count if stale or kind in _slurm_reasons.WANTED else 0
        if job.split > sum(eligible):
            start, capped = 0, f"it asks for {job.split} nodes, and {sum(eligible)} may run it"
        if start and job.throttle is not None:  # elements beyond the throttle wait until other elements end
            start, capped = int(min(start, max(job.throttle - running[job.array], 0))), "JobArrayTaskLimit"
            running[job.array] += start
        shape.waiting["" if kind == "room" else job.reason] += start * job.split
        shape.capped[capped] += (job.count - start) * job.split
    shape.waiting, shape.capped = +shape.waiting, +shape.capped
    return shape


def _sum(amounts: Iterable[Mapping[str, float]]) -> Amounts:
    """Sum of amounts by resource."""
    found: Amounts = Counter()
    for each in amounts:
        found.update(each)
    return found


def _split(job: _Job, nodes: Sequence[Mapping[str, float]], count: int) -> int:
    """Number of nodes of a job: the smallest number, at least the requested one, at which a part fits on some node.

    The requested number is returned if the smallest number exceeds the limit of the job, or the number `count` of
    eligible nodes.
    """

    def needed(has: Mapping[str, float]) -> float:
        room = {what: has.get(what, 0.0) - job.each.get(what, 0.0) for what in job.total | job.each}
        parts = [job.total[what] / room[what] if room[what] > 0 else np.inf for what in job.total]
        return float(np.ceil(max(parts, default=1.0) - _ROUNDED)) if min(room.values(), default=0.0) >= 0 else np.inf

    least, asked = min(map(needed, nodes), default=np.inf), job.nodes or 1
    return int(least) if asked < least <= min(job.most_nodes, count) else asked


def _is_eligible(job: _Job, node: _Node, required: frozenset[str], excluded: frozenset[str]) -> bool:
    reserved = node.reservations & {*words(job.place[3], job.who)}
    return (
        (not job.partitions or bool(job.partitions & node.partitions))
        and has_features(job.place[0], node.features)
        and node.name not in excluded
        and (not required or node.name in required or len(required) < job.nodes)
        and (bool(reserved) or not (node.reservations or job.place[3]))
        and all(float(least) <= size for least, size in zip(job.place[5:], node.sizes, strict=True))
    )


def _unused(rows: Mapping[str, Iterable[Object]]) -> list[str]:
    """Notes on fields of records that are relevant but not used, or that the reader does not know."""
    seen, unknown = Fields("slurm"), dict[str, None]()
    for kind, records in rows.items():
        table = fields_of("slurm")[kind]
        known = {*table["used"], *table["none"], *table["noted"]}
        for one in records:
            said = {name: value for name, value in one.items() if shown(value)}
            seen.see(kind, said, str(one.get("job_id", one.get("name"))))
            unknown |= dict.fromkeys(f"{name} of {kind}" for name in said if name not in known)
    return [*seen.notes(), *([f"Not known, and not used: {', '.join(unknown)}."] if unknown else [])]


def _rows(table: Any, path: Path) -> list[Object]:
    """Rows of the associations of `sshare --json`, at any depth of tables `shares`; empty if there are none."""
    while isinstance(table, Mapping):
        table = table.get("shares") or []
    return objects({"shares": table}, "shares", path, f"expected {_LAYOUT}")
