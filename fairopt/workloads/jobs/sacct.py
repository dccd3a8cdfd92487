"""`sacct`: jobs of Slurm's accounting, from the output of `sacct --parsable2` or `sacct --json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ...base import files
from ...base.errors import DataError
from ...base.libraries import pd
from ...scheduling.workload import Workload
from .._slurm_words import hosts, tres
from .._snapshot import objects
from ..sources import workload_reader

_COLUMNS = ("JobID", "User", "Account", "Submit", "Start", "End", "AllocTRES", "NodeList")
_REMEDY = f"write it with: sacct --allusers --parsable2 --format={','.join(_COLUMNS)}, or sacct --allusers --json"


@workload_reader("sacct", "jobs of Slurm's accounting: sacct:FILE, of sacct --parsable2 or --json", folder="sacct")
def sacct(
    directory: str | Path, by: Literal["account", "user"] = "account", rng: np.random.Generator | None = None
) -> Workload:
    """Read the jobs that ran as a workload of tasks, each the part of a job on one node.

    Resources are those of `AllocTRES`: `cpu`, `memory` [GiB], and generic resources. Servers are the nodes of
    `NodeList`, each with the largest amounts that jobs of the file used on it at once, which are lower bounds on its
    capacities. Steps of jobs are skipped; jobs that did not start, or have not ended, are left out and counted.

    Parameters
    ----------
    directory : str or Path
        File with the output of `sacct`.
    by : str
        Definition of users: "account", or "user" (persons).
    rng : Generator, optional
        Not used.

    Raises
    ------
    DataError
        The file cannot be read, lacks a column, or has no job that ran; the message has the line or job.
    """
    path = Path(directory)
    content = files.read(path, "output of sacct")
    rows = list(_of_json(content, path) if content.lstrip().startswith("{") else _of_text(content, path))
    made = [row for where, one in rows for row in _row(one, where, by)]
    if not made:
        raise DataError(f"{path} has no job that ran; {_REMEDY}")
    table = pd.DataFrame(made).fillna(0.0)
    table["arrival"] -= table["arrival"].min()
    servers = _servers(table, [name for name in table if name not in _OURS])
    report: dict[str, int | float | str] = {
        "jobs": len(made),
        "jobs that did not run to an end, left out": len(rows) - len(made),
    }
    source = f"{path.name}: {len(made)} jobs of Slurm"
    return Workload.from_frames(table.drop(columns=["start", "nodes"]), servers, source=source, report=report)


_OURS = ("job", "user", "arrival", "start", "duration", "tasks", "nodes")


def _of_text(content: str, path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the jobs in the output of `--parsable2`, without steps, each after its file and line for error messages."""
    heads, *lines = (line.split("|") for line in content.splitlines() or [""])
    heads = [name.strip() for name in heads]
    for name in ("JobID", "Submit", "Start", "End", "AllocTRES"):
        if name not in heads:
            raise DataError(f"{path} lacks the column {name}; {_REMEDY}")
    for k, line in enumerate(lines, 2):
        if len(line) != len(heads):
            raise DataError(f"{path}:{k}: there are {len(line)} fields; the header has {len(heads)}")
        row = dict(zip(heads, line, strict=True))
        if "." not in row["JobID"]:
            yield f"{path}:{k}", row


def _of_json(content: str, path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the jobs in the output of `--json` in the format of `_of_text`, each after its name for error messages."""
    for job in objects(files.parse_json(content, path), "jobs", path, _REMEDY):
        name, times, found = str(job.get("job_id")), job.get("time"), job.get("tres")
        if not isinstance(times, Mapping) or not isinstance(found, Mapping):
            raise DataError(f"{path}: job {name} lacks `time` or `tres`; {_REMEDY}")
        rows = objects({"allocated": found.get("allocated") or []}, "allocated", path, _REMEDY)
        counted = [(one, one.get("count")) for one in rows]
        held = ["/".join(str(one[key]) for key in ("type", "name") if one.get(key)) + f"={count}"
                for one, count in counted if isinstance(count, int) and count > 0]  # fmt: skip
        days = {head: str(times.get(key) or "") for head, key in
                (("Submit", "submission"), ("Start", "start"), ("End", "end"))}  # fmt: skip
        yield f"{path}: job {name}", {"JobID": name, "User": job.get("user"), "Account": job.get("account"),
                                      "AllocTRES": ",".join(held), "NodeList": job.get("nodes"), **days}  # fmt: skip


def _row(job: Mapping[str, Any], where: str, by: str) -> Iterator[dict[str, Any]]:
    """Yield the row of a job, unless it never ran; `by` selects whether its account or its user becomes the user."""
    with files.inside(where):
        submit, start, end = (_time(job[key]) for key in ("Submit", "Start", "End"))
        uses = tres(job["AllocTRES"], f"AllocTRES of job {job['JobID']}")
        nodes = hosts(job.get("NodeList"), f"NodeList of job {job['JobID']}")
        count = int(uses.pop("node", 0) or len(nodes) or 1)
        each = {what: amount / count for what, amount in uses.items() if amount and ":" not in what}
        if start is not None and end is not None and end > start and each:
            name = job.get("Account" if by == "account" else "User") or "nobody"
            arrival = start if submit is None else submit
            yield {"user": name, "job": job["JobID"], "arrival": arrival, "start": start, "duration": end - start,
                   "tasks": count, "nodes": nodes, **each}  # fmt: skip


def _time(text: str) -> float | None:
    """Seconds from a date such as 2024-01-31T12:00:00, or from a text of seconds; None for "", "Unknown" or "None"."""
    if text.strip() in ("", "Unknown", "None"):
        return None
    try:
        return float(text) if text.isdecimal() else datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise DataError(f"{text!r} is no date such as 2024-01-31T12:00:00") from None


def _servers(jobs: pd.DataFrame, resources: list[str]) -> pd.DataFrame:
    """Nodes with the largest amounts used at once as capacities.

    If no job names its nodes, there are as many equal nodes as the largest job has tasks, with the largest demand.
    """
    parts = jobs.explode("nodes").dropna(subset=["nodes"])
    if parts.empty:
        return pd.DataFrame([{"count": int(jobs["tasks"].max())} | jobs[resources].max().to_dict()])
    begin = parts[["nodes", "start", *resources]]
    end = (-parts[resources]).assign(nodes=parts["nodes"], start=parts["start"] + parts["duration"])
    events = pd.concat([end, begin]).sort_values(["nodes", "start"], kind="stable")
    held = events.groupby("nodes")[resources].cumsum()
    return held.groupby(events["nodes"]).max().rename_axis("server").reset_index()
