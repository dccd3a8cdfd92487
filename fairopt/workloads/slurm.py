"""A Slurm cluster as `scontrol show nodes --json`, `squeue --json` and `sshare --json` print it.

Servers are nodes that are neither down nor drained, at what jobs may use of them. A user is the jobs of an account (or
a person) that ask for the same per node in the same partitions: a task is what a job has on one node.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..errors import DataError
from ..model import _files
from ..model.cluster import Cluster
from ._registry import reader
from ._snapshot import Snapshot, numbered

_LAYOUT = "nodes.json (scontrol show nodes --json), jobs.json (squeue --json), perhaps shares.json (sshare --json)"
_AWAY = {"DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "FUTURE", "NOT_RESPONDING", "POWERED_DOWN", "MAINT"}
_THERE = ("RUNNING", "PENDING")
_UNITS = {"": Decimal(1), "K": Decimal(1) / 1024, "M": Decimal(1), "G": Decimal(1024), "T": Decimal(1024) ** 2}
_ARRAY = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?")
_MOST = 10_000_000  # tasks of an array
#: Of trackable resources these say nothing about what a node has.
_NOT_SHARED = ("billing", "node", "energy", "fs/", "ic/", "license/", "vmem", "pages")

Object = Mapping[str, Any]


@dataclass(frozen=True)
class _Job:
    """A job: whose it is, what it asks for on each node, and where it may run."""

    owner: str
    asks: tuple[tuple[str, Decimal], ...]
    partitions: tuple[str, ...]
    features: str
    tasks: int
    running: bool


@reader(
    "slurm", "a Slurm cluster: slurm:DIR with nodes.json, jobs.json, shares.json", folder="slurm", stand_in="slurm-like"
)
def slurm(
    directory: str | Path,
    by: Literal["account", "user"] = "account",
    max_tasks: bool = True,
    rng: np.random.Generator | None = None,
) -> Snapshot:
    """Nodes and jobs as a cluster: resources `cpu`, `memory` [GiB], and generic ones such as `gres/gpu`.

    A node has its effective CPUs, its memory less what is specialized, and the generic resources of its `tres`. A job
    asks for `tres_req_str` divided by its number of nodes, on each of these; elements of a job array count one by one.
    It may run in its partitions, on nodes that have the features it asks for (joined by `&` or `|`). Numbers may be
    plain, or tables with `set`, `infinite` and `number`.

    Parameters
    ----------
    by
        Who a user is: an account, with the shares of `shares.json` as weight, or a person of an account.
    max_tasks
        Limit a user to its jobs, running and pending, in tasks. False: as if it had any number.

    Raises
    ------
    DataError
        A file is missing, cannot be read or is damaged: with the node or job; no node or no job counts.
    """
    folder = Path(directory)
    nodes_path, jobs_path, shares_path = (folder / f"{name}.json" for name in ("nodes", "jobs", "shares"))
    if not nodes_path.is_file() or not jobs_path.is_file():
        raise DataError(f"{folder} holds no Slurm snapshot; expected {_LAYOUT}")
    nodes, jobs = _list(_read(nodes_path), "nodes", nodes_path), _list(_read(jobs_path), "jobs", jobs_path)
    shares = _read(shares_path) if shares_path.is_file() else {}
    return snapshot(nodes, jobs, _shares(shares, shares_path), str(folder), by, max_tasks)


def snapshot(
    nodes: list[Object],
    jobs: list[Object],
    weights: Mapping[str, float],
    where: str,
    by: Literal["account", "user"] = "account",
    max_tasks: bool = True,
) -> Snapshot:
    """The cluster of these nodes and jobs; `weights` by account. See `slurm`."""
    report: Counter[str] = Counter()
    hosts = [node for node in nodes if _is_there(node, report)]
    if not hosts:
        raise DataError(f"{where} has no node that jobs may use; of {len(nodes)} all are down or drained")
    capacity = [_has(node) for node in hosts]
    users: dict[tuple[Any, ...], list[_Job]] = {}
    for job in jobs:
        found = _job(job, by, report)
        if found is not None:
            users.setdefault((found.owner, found.asks, found.partitions, found.features), []).append(found)
    if not users:
        raise DataError(f"{where} has no job that runs or waits; of {len(jobs)} all have ended")
    generic = sorted({what for job in users for what, amount in job[1] if amount and what not in ("cpu", "memory")})
    resources = ["cpu", "memory", *generic]
    eligible = np.array([[_may_run(key[2], key[3], node) for node in hosts] for key in users], dtype=bool)
    demand = np.array([[float(dict(key[1]).get(what, Decimal())) for what in resources] for key in users])
    names = _names([(key[0], key[1]) for key in users])
    reasons = dict.fromkeys(np.flatnonzero(~eligible.any(axis=1)).tolist(), "no node has its partition and features")
    reasons |= dict.fromkeys(np.flatnonzero(~demand.any(axis=1)).tolist(), "its jobs ask for nothing")
    kept = [n for n in range(len(users)) if n not in reasons]
    if not kept:
        raise DataError(f"{where}: no node may run any of the jobs; look at partitions and features")
    number = [sum(job.tasks for job in group) for group in users.values()]
    owners = [key[0] for key in users]
    cluster = Cluster(
        [[float(has.get(what, Decimal())) for what in resources] for has in capacity],
        demand[kept],
        weight=[weights.get(owners[n].partition("/")[0], 1.0) for n in kept],
        eligible=eligible[kept],
        max_tasks=[float(number[n]) for n in kept] if max_tasks else None,
        resources=resources,
        users=[names[n] for n in kept],
        servers=[_name(node) for node in hosts],
    )
    report["jobs running"] = sum(job.running for group in users.values() for job in group)
    report["jobs pending"] = sum(not job.running for group in users.values() for job in group)
    about = f"Slurm ({Path(where).name}): {len(kept)} users ({by} and shape) on {len(hosts)} nodes"
    now = [sum(job.tasks for job in group if job.running) for group in users.values()]
    running = {names[n]: now[n] for n in kept}
    return Snapshot(cluster, about, dict(report), {names[n]: reason for n, reason in reasons.items()}, running)


def _read(path: Path) -> Object:
    found = _files.parse_json(_files.read(path, "Slurm snapshot"), path)
    if not isinstance(found, dict):
        raise DataError(f"{path} is no JSON object; expected {_LAYOUT}")
    return found


def _list(table: Object, key: str, path: Path) -> list[Object]:
    found = table.get(key)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise DataError(f"{path} has no list {key!r} of objects; expected {_LAYOUT}")
    return found


def _number(value: object, what: str) -> int | None:
    """Plain, or {set, infinite, number}; None if it is not set."""
    if isinstance(value, Mapping):
        if value.get("infinite") or not value.get("set", True):
            return None
        value = value.get("number")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        raise DataError(f"{what} is {str(value)[:40]!r}; it must be a number >= 0")
    return int(value)


def _words(value: object, what: str) -> list[str]:
    """A list of words, or one with commas between them."""
    if value is None:
        return []
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise DataError(f"{what} is {str(value)[:40]!r}; it must be a list of words")
    return [word.strip() for word in words if word.strip()]


def _name(node: Object) -> str:
    found = node.get("name")
    if not isinstance(found, str) or not found:
        raise DataError(f"a node has the name {str(found)[:40]!r}; every node needs one")
    return found


def _is_there(node: Object, report: Counter[str]) -> bool:
    name = _name(node)
    state = {word.upper() for word in _words(node.get("state"), f"the state of node {name}")}
    if state & _AWAY:
        report["nodes that are down or drained, left out"] += 1
    return not state & _AWAY


def _has(node: Object) -> dict[str, Decimal]:
    """CPUs, GiB and generic resources that jobs may use of a node."""
    who = f"node {_name(node)}"
    found = _tres(node.get("tres"), who)
    cpus = _number(node.get("effective_cpus", node.get("cpus")), f"effective_cpus of {who}")
    memory = _number(node.get("real_memory"), f"real_memory of {who}")
    less = _number(node.get("specialized_memory"), f"specialized_memory of {who}") or 0
    if cpus is not None:
        found["cpu"] = Decimal(cpus)
    if memory is not None:
        found["memory"] = Decimal(max(memory - less, 0)) / 1024
    return found


def _tres(text: object, who: str) -> dict[str, Decimal]:
    """`cpu=8,mem=16384M,gres/gpu=2`: amounts by resource, memory in GiB."""
    if text is None or text == "":
        return {}
    if not isinstance(text, str):
        raise DataError(f"tres of {who} is {str(text)[:40]!r}; it must be a text such as 'cpu=8,mem=16G'")
    found: dict[str, Decimal] = {}
    for part in text.split(","):
        what, _, value = part.partition("=")
        match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([KMGT]?)", value)
        if match is None:
            if value in ("N/A", "(null)"):
                continue
            raise DataError(f"tres of {who} has {part[:40]!r}; it must read like cpu=8 or mem=16G")
        amount = Decimal(match[1]) * _UNITS[match[2]]
        if what == "mem":
            found["memory"] = amount / 1024
        elif not what.startswith(_NOT_SHARED):
            found[what] = amount * (1 if not match[2] else 1024 * 1024)
    return found


def _job(job: Object, by: str, report: Counter[str]) -> _Job | None:
    who = f"job {str(job.get('job_id'))[:20]}"
    state = {word.upper() for word in _words(job.get("job_state"), f"job_state of {who}")}
    if not state & set(_THERE):
        report["jobs that have ended, left out"] += 1
        return None
    account, person = (str(job.get(key) or "nobody") for key in ("account", "user_name"))
    nodes = max(_number(job.get("node_count"), f"node_count of {who}") or 1, 1)
    asks = _tres(job.get("tres_req_str"), who)
    each = tuple(sorted((what, amount / nodes) for what, amount in asks.items() if amount))
    features = job.get("features") or ""
    if not isinstance(features, str):
        raise DataError(f"features of {who} is {str(features)[:40]!r}; it must be a text")
    partitions = tuple(sorted(_words(job.get("partition"), f"partition of {who}")))
    owner = account if by == "account" else f"{account}/{person}"
    count = _elements(job.get("array_task_string"), who) * nodes
    return _Job(owner, each, partitions, features, count, "RUNNING" in state)


def _elements(text: object, who: str) -> int:
    """The number of elements that `1-10:2,20%4` stands for; 1 if there is none."""
    if text is None or text == "":
        return 1
    count = 0
    for part in str(text).partition("%")[0].split(","):
        match = _ARRAY.fullmatch(part.strip())
        if match is None:
            raise DataError(f"array_task_string of {who} is {str(text)[:40]!r}; it must read like 1-10 or 1-9:2,20")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        count += max(0, (last - first) // max(step, 1) + 1)
    if not 1 <= count <= _MOST:
        raise DataError(f"array_task_string of {who} stands for {count} jobs; it must be 1 to {_MOST}")
    return count


def _may_run(partitions: tuple[str, ...], features: str, node: Object) -> bool:
    name = _name(node)
    there = set(_words(node.get("partitions"), f"partitions of node {name}"))
    has = set(_words(node.get("features", node.get("active_features")), f"features of node {name}"))
    if partitions and not there & set(partitions):
        return False
    return not features or any(
        all(word.strip(" ()[]") in has for word in choice.split("&") if word) for choice in features.split("|")
    )


def _shares(table: Object, path: Path) -> dict[str, float]:
    """Raw shares of accounts, where they are above 0."""
    inner = table.get("shares")
    rows = inner.get("shares") if isinstance(inner, Mapping) else inner
    if rows is None:
        return {}
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path} has no list 'shares' of objects; expected {_LAYOUT}")
    found = {}
    for row in rows:
        kind = row.get("type")
        of_user = "USER" in kind if isinstance(kind, list) else kind == "USER"
        number = _number(row.get("shares"), f"shares of {str(row.get('name'))[:40]!r}")
        if not of_user and number:
            found[str(row.get("name"))] = float(number)
    return found


def _names(users: list[tuple[str, tuple[tuple[str, Decimal], ...]]]) -> list[str]:
    """The owner where it has one shape, else with what it asks for per node, and a number where that is not enough."""
    many = Counter(owner for owner, _ in users)
    names = []
    for owner, asks in users:
        shape = ", ".join(f"{float(amount):g}{'GiB' if what == 'memory' else ' ' + what.rpartition('/')[2]}"
                          for what, amount in asks)  # fmt: skip
        names.append(owner if many[owner] == 1 else f"{owner}: {shape or 'nothing'}")
    return numbered(names)
