"""Reader of Slurm clusters from the output of `scontrol show nodes --json`, `squeue --json` and `sshare --json`.

Servers are nodes that are neither down nor drained, with the resources available to jobs. A user is the set of jobs of
an account (or a person) with equal requests per node and equal partitions; a task is the part of a job on one node.
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
_DOWN = {"DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "FUTURE", "NOT_RESPONDING", "POWERED_DOWN", "MAINT"}
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?")
_NODES = re.compile(r"([^\[\],\s]+)(?:\[([^\]]*)\]([^\[\],\s]*))?")
#: Reasons of pending jobs that wait for a limit of their account, another job or a time, as opposed to capacity.
_LIMITED = re.compile("Assoc|QOS|JobHeld|Dependency|BeginTime|Reservation")
_MOST = 10_000_000  # tasks of a job array
#: Prefixes of trackable resources that are not capacities of nodes.
_NOT_SHARED = ("billing", "node", "energy", "fs/", "ic/", "license/", "vmem", "pages")

Object = Mapping[str, Any]


@reader("slurm", "a Slurm cluster: slurm:DIR with nodes.json, jobs.json, shares.json", folder="slurm")
def slurm(
    directory: str | Path,
    by: Literal["account", "user"] = "account",
    max_tasks: bool = True,
    rng: np.random.Generator | None = None,
) -> Snapshot:
    """Read nodes and jobs as a cluster, with resources `cpu`, `memory` [GiB], and generic ones such as `gres/gpu`.

    A node has its effective CPUs, its memory minus specialized memory, and the generic resources of its `tres`. A job
    requests `tres_req_str` divided by its number of nodes on each of them; elements of job arrays count separately. It
    is eligible on nodes of its partitions with the requested features (joined by `&` or `|`). Numbers are plain, or
    tables with `set`, `infinite` and `number`.

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
    """Build the cluster of these nodes and jobs, with `weights` by account. See `slurm`."""
    report: Counter[str] = Counter()
    hosts = [node for node in nodes if _is_available(node, report)]
    if not hosts:
        raise DataError(f"{where} has no node that jobs may use; of {len(nodes)} all are down or drained")
    shapes: dict[object, Shape] = {}
    for job in jobs:
        _add(job, by, hosts, weights, shapes, report)
    if not shapes:
        raise DataError(f"{where} has no job that runs or waits; of {len(jobs)} all have ended")
    about = f"Slurm ({Path(where).name}): {{}} users ({by} and shape) on {len(hosts)} nodes"
    return of_shapes(
        [*shapes.values()], [_name(node) for node in hosts], [_capacity(node) for node in hosts], max_tasks, about,
        report, ": ", "no node has its partition and features",
        f"{where}: no node may run any of the jobs; look at partitions and features",
    )  # fmt: skip


def _read(path: Path) -> Any:
    return files.parse_json(files.read(path, "Slurm snapshot"), path)


def _number(value: object, what: str) -> int | None:
    """Parse a number, plain or as {set, infinite, number}; None if it is not set."""
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
    """Parse a list of words, or words separated by commas."""
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


def _is_available(node: Object, report: Counter[str]) -> bool:
    name = _name(node)
    # Slurm 21 lists flags such as DRAIN separately from the base state.
    listed = [word for key in ("state", "state_flags") for word in _words(node.get(key), f"the {key} of node {name}")]
    state = {word.upper() for word in listed}
    if state & _DOWN:
        report["nodes that are down or drained, left out"] += 1
    return not state & _DOWN


def _capacity(node: Object) -> dict[str, float]:
    """CPUs, GiB and generic resources of a node that are available to jobs."""
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
    """Parse `cpu=8,mem=16384M,gres/gpu=2`: amounts by resource, with memory (in MB without a unit) converted to GiB."""
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
    """Add a job to those of its owner with equal requests per node and equal partitions."""
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
        eligible = tuple(_is_eligible(partitions, features, node) for node in hosts)
        amounts = {what: float(amount) for what, amount in asks.items()}
        shapes[key] = Shape(owner, amounts, eligible, weights.get(account, 1.0))
    count = _elements(job.get("array_task_string"), who) * nodes
    if count > _MOST:
        raise DataError(f"{who} stands for {count} tasks, on {nodes} nodes each; at most {_MOST} are read")
    reason = str(job.get("state_reason") or "")
    if runs:
        shapes[key].held.update(islice(cycle(_hosts(job.get("nodes"), who, count)), count))
    else:
        (shapes[key].capped if _LIMITED.match(reason) else shapes[key].waiting)[reason] += count


def _hosts(text: object, who: str, most: int) -> list[str]:
    """Expand a host list such as `n[001-003,7],login`; [''] if it is empty."""
    found: list[str] = []
    for before, inside, after in _NODES.findall(str(text or "")):
        if not inside:
            found.append(before)
        for digits, numbers in _ranges(inside, f"nodes of {who} is {str(text)[:40]!r}; it must read like n[001-003,7]"):
            found += [f"{before}{number:0{digits}d}{after}" for number in numbers[:most]]
    return found or [""]


def _elements(text: object, who: str) -> int:
    """Number of elements of an array specification such as `1-10:2,20%4`; 1 without one."""
    of = f"array_task_string of {who}"
    listed = "" if text is None else str(text).partition("%")[0]
    ranges = _ranges(listed, f"{of} is {str(text)[:40]!r}; it must read like 1-10 or 1-9:2,20")
    count = sum(len(numbers) for _, numbers in ranges) if listed else 1
    if not 1 <= count <= _MOST:
        raise DataError(f"{of} stands for {count} jobs; it must be 1 to {_MOST}")
    return count


def _ranges(text: str, wrong: str) -> Iterator[tuple[int, range]]:
    """Parse ranges such as `001-003,7` or `1-9:2`, each with the number of digits of its start."""
    for part in text.split(",") if text else ():
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise DataError(wrong)
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        yield len(match[1]), range(first, last + 1, max(step, 1))


def _is_eligible(partitions: frozenset[str], features: str, node: Object) -> bool:
    name = _name(node)
    there = set(_words(node.get("partitions"), f"partitions of node {name}"))
    has = set(_words(node.get("features", node.get("active_features")), f"features of node {name}"))
    if partitions and not there & partitions:
        return False
    return not features or any(
        all(word.strip(" ()[]") in has for word in choice.split("&") if word) for choice in features.split("|")
    )


def _shares(table: Any, path: Path) -> dict[str, float]:
    """Positive raw shares by account."""
    while isinstance(table, Mapping):
        table = table.get("shares") or []
    found = {}
    for row in objects({"shares": table}, "shares", path, f"expected {_LAYOUT}"):
        number = _number(row.get("shares"), f"shares of {str(row.get('name'))[:40]!r}")
        if number and "USER" not in _words(row.get("type"), "the type of an association"):
            found[str(row.get("name"))] = float(number)
    return found
