"""A Slurm cluster as `scontrol show nodes --json`, `squeue --json` and `sshare --json` print it.

Servers are nodes that are neither down nor drained, at what jobs may use of them. A user is the jobs of an account (or
a person) that ask for the same per node in the same partitions: a task is what a job has on one node.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..base import files
from ..base.errors import DataError
from ._snapshot import GIB, Shape, Snapshot, objects, of_shapes, quantity
from .sources import reader

_LAYOUT = "nodes.json (scontrol show nodes --json), jobs.json (squeue --json), perhaps shares.json (sshare --json)"
_AWAY = {"DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "FUTURE", "NOT_RESPONDING", "POWERED_DOWN", "MAINT"}
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?")
_NODES = re.compile(r"([^\[\],\s]+)(?:\[([^\]]*)\]([^\[\],\s]*))?")
#: Reasons of a job that waits for a limit of its account, for another job or for a time, and not for room.
_LIMITED = re.compile("Assoc|QOS|JobHeld|Dependency|BeginTime|Reservation")
_MOST = 10_000_000  # tasks of an array
#: Of trackable resources these say nothing about what a node has.
_NOT_SHARED = ("billing", "node", "energy", "fs/", "ic/", "license/", "vmem", "pages")

Object = Mapping[str, Any]


@reader("slurm", "a Slurm cluster: slurm:DIR with nodes.json, jobs.json, shares.json", folder="slurm")
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
    nodes, jobs = (objects(_read(path), path.stem, path, f"expected {_LAYOUT}") for path in (nodes_path, jobs_path))
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
    shapes: dict[object, Shape] = {}
    for job in jobs:
        _add(job, by, hosts, weights, shapes, report)
    if not shapes:
        raise DataError(f"{where} has no job that runs or waits; of {len(jobs)} all have ended")
    about = f"Slurm ({Path(where).name}): {{}} users ({by} and shape) on {len(hosts)} nodes"
    return of_shapes(
        [*shapes.values()], [_name(node) for node in hosts], [_has(node) for node in hosts], max_tasks, about, report,
        ": ", "no node has its partition and features",
        f"{where}: no node may run any of the jobs; look at partitions and features",
    )  # fmt: skip


def _read(path: Path) -> Any:
    return files.parse_json(files.read(path, "Slurm snapshot"), path)


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
    # Of Slurm 21 what else a node is stands apart: idle, and DRAIN.
    listed = [word for key in ("state", "state_flags") for word in _words(node.get(key), f"the {key} of node {name}")]
    state = {word.upper() for word in listed}
    if state & _AWAY:
        report["nodes that are down or drained, left out"] += 1
    return not state & _AWAY


def _has(node: Object) -> dict[str, float]:
    """CPUs, GiB and generic resources that jobs may use of a node."""
    who = f"node {_name(node)}"
    found = {what: float(amount) for what, amount in _tres(node.get("tres"), who).items()}
    cpus = _number(node.get("effective_cpus", node.get("cpus")), f"effective_cpus of {who}")
    memory = _number(node.get("real_memory"), f"real_memory of {who}")
    less = _number(node.get("specialized_memory"), f"specialized_memory of {who}") or 0
    if cpus is not None:
        found["cpu"] = float(cpus)
    if memory is not None:
        found["memory"] = max(memory - less, 0) / 1024
    return found


def _tres(text: object, who: str) -> dict[str, Decimal]:
    """`cpu=8,mem=16384M,gres/gpu=2`: amounts by resource, memory (megabytes if nothing is said) in GiB."""
    found: dict[str, Decimal] = {}
    for part in _words(text, f"tres of {who}"):
        what, _, value = part.partition("=")
        if value in ("N/A", "(null)") or what.startswith(_NOT_SHARED):
            continue
        binary = "i" if value[-1:].isalpha() else "Mi" if what == "mem" else ""
        try:
            amount = quantity(value + binary)
        except DataError:
            raise DataError(f"tres of {who} has {part[:40]!r}; it must read like cpu=8 or mem=16G") from None
        if what == "mem":
            found["memory"] = amount / GIB
        else:
            found[what] = amount
    return found


def _add(
    job: Object, by: str, hosts: list[Object], weights: Mapping[str, float], shapes: dict[object, Shape],
    report: Counter[str],
) -> None:  # fmt: skip
    """Count a job with those of its owner that ask for the same on each node, in the same partitions."""
    who = f"job {str(job.get('job_id'))[:20]}"
    state = {word.upper() for word in _words(job.get("job_state"), f"job_state of {who}")}
    runs = "RUNNING" in state
    if not runs and "PENDING" not in state:
        report["jobs that have ended, left out"] += 1
        return
    report["jobs running" if runs else "jobs pending"] += 1
    account, person = (str(job.get(key) or "nobody") for key in ("account", "user_name"))
    nodes = max(_number(job.get("node_count"), f"node_count of {who}") or 1, 1)
    asks = {what: amount / nodes for what, amount in _tres(job.get("tres_req_str"), who).items() if amount}
    features = job.get("features") or ""
    if not isinstance(features, str):
        raise DataError(f"features of {who} is {str(features)[:40]!r}; it must be a text")
    partitions = frozenset(_words(job.get("partition"), f"partition of {who}"))
    owner = account if by == "account" else f"{account}/{person}"
    key = (owner, frozenset(asks.items()), partitions, features)
    if key not in shapes:
        eligible = tuple(_may_run(partitions, features, node) for node in hosts)
        amounts = {what: float(amount) for what, amount in asks.items()}
        shapes[key] = Shape(owner, amounts, eligible, weights.get(account, 1.0))
    count = _elements(job.get("array_task_string"), who) * nodes
    if count > _MOST:
        raise DataError(f"{who} stands for {count} tasks, on {nodes} nodes each; at most {_MOST} are read")
    shapes[key].tasks += count
    if runs:
        shapes[key].on.update(islice(cycle(_hosts(job.get("nodes"), who, count)), count))
    elif _LIMITED.match(str(job.get("state_reason"))):
        shapes[key].gated += count


def _hosts(text: object, who: str, most: int) -> list[str]:
    """The nodes that `n[001-003,7],login` stands for; one without a name where it says nothing."""
    found: list[str] = []
    for before, inside, after in _NODES.findall(str(text or "")):
        if not inside:
            found.append(before)
        for digits, numbers in _ranges(inside, f"nodes of {who} is {str(text)[:40]!r}; it must read like n[001-003,7]"):
            found += [f"{before}{number:0{digits}d}{after}" for number in numbers[:most]]
    return found or [""]


def _elements(text: object, who: str) -> int:
    """The number of elements that `1-10:2,20%4` stands for; 1 if there is none."""
    of = f"array_task_string of {who}"
    listed = "" if text is None else str(text).partition("%")[0]
    ranges = _ranges(listed, f"{of} is {str(text)[:40]!r}; it must read like 1-10 or 1-9:2,20")
    count = sum(len(numbers) for _, numbers in ranges) if listed else 1
    if not 1 <= count <= _MOST:
        raise DataError(f"{of} stands for {count} jobs; it must be 1 to {_MOST}")
    return count


def _ranges(text: str, wrong: str) -> Iterator[tuple[int, range]]:
    """The numbers that `001-003,7` or `1-9:2` stands for, range by range, each with the digits of its first."""
    for part in text.split(",") if text else ():
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise DataError(wrong)
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        yield len(match[1]), range(first, last + 1, max(step, 1))


def _may_run(partitions: frozenset[str], features: str, node: Object) -> bool:
    name = _name(node)
    there = set(_words(node.get("partitions"), f"partitions of node {name}"))
    has = set(_words(node.get("features", node.get("active_features")), f"features of node {name}"))
    if partitions and not there & partitions:
        return False
    return not features or any(
        all(word.strip(" ()[]") in has for word in choice.split("&") if word) for choice in features.split("|")
    )


def _shares(table: Any, path: Path) -> dict[str, float]:
    """Raw shares of accounts, where they are above 0."""
    while isinstance(table, Mapping):
        table = table.get("shares") or []
    found = {}
    for row in objects({"shares": table}, "shares", path, f"expected {_LAYOUT}"):
        number = _number(row.get("shares"), f"shares of {str(row.get('name'))[:40]!r}")
        if number and "USER" not in _words(row.get("type"), "the type of an association"):
            found[str(row.get("name"))] = float(number)
    return found
