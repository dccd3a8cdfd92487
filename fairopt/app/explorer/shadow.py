"""Comparison of running tasks with entitlements in snapshots of a cluster over time, by queue.

A snapshot is a file of Kubernetes or a folder of Slurm. Entitlements are computed from each snapshot alone or, with a
half-life, with weights that are reduced by past use (`fairopt.scheduling.memory`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import mechanisms
from ...base import files
from ...base.errors import DataError, FairoptError
from ...base.libraries import pd
from ...base.names import plain
from ...base.progress import tqdm
from ...mechanisms import Mechanism
from ...mechanisms.tree import Tree
from ...result.allocation import Allocation
from ...scheduling import memory
from ...study import metrics
from .queues import Members, members, remembered, shares
from .verdict import judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...workloads import Snapshot

#: Columns of `Shadow.frame`, which has a row for each snapshot and queue.
COLUMNS = ("time", "snapshot", "queue", "parent", "running", "wanted", "entitled", "share", "share_entitled",
           "shortfall", "shortfall_share", "since", "held_by", "usage", "distance", "mechanism")  # fmt: skip
Rows = list[dict[Any, Any]]
#: Date and time in the name of a file or folder, in UTC.
_DATE = re.compile(r"(?<!\d)(\d{4})[-_]?(\d\d)[-_]?(\d\d)(?:[T_ -]?(\d\d)[:_-]?(\d\d)(?:[:_-]?(\d\d))?)?Z?(?!\d)")
_UNIX = re.compile(r"(?<!\d)(1\d{9})(?!\d)")
#: Attributes of a cluster that must agree for a warm start.
_NAMES = ("users", "servers", "resources")
#: Largest number of queues that are drawn.
_DRAWN = 12


@dataclass(eq=False)
class Shadow:
    """Running tasks and entitlements in the snapshots of a folder.

    Attributes
    ----------
    frame : DataFrame
        A row for each snapshot and queue, in order of time: `time`, `snapshot`, `queue`, and `parent` of the queue;
        `running`, `wanted`, `entitled` and `shortfall` in tasks, summed over the users of the queue; `share`,
        `share_entitled`, `shortfall_share` as dominant shares of the cluster; `since`, the first of the latest
        consecutive snapshots in which a user of the queue lacks a whole task, if any; `held_by`, the user with the
        largest shortfall and what prevents its next task; `usage`, the decaying mean of earlier shares
        (`scheduling.memory`); and `distance` (`metrics.distance`) and `mechanism`, equal for all queues of a snapshot.
    notes : dict of str to str
        Snapshots that could not be used, each with the reason.
    undated : tuple of str
        Names of snapshots that state no date; the time of such a snapshot is the last change of its file.
    interrupted : bool
        True if Ctrl-C ended the computation before the last snapshot.
    """

    frame: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(COLUMNS)))
    notes: dict[str, str] = field(default_factory=dict)
    undated: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def last(self) -> pd.DataFrame:
        """Rows of the last snapshot, by decreasing shortfall."""
        rows = self.frame[self.frame["time"] == self.frame["time"].max()]
        return rows.sort_values("shortfall_share", ascending=False, kind="stable")

    def draw(self, ax: Any = None) -> Figure:
        """Draw used shares, entitled shares and shortfalls over time, of the (up to 12) queues of largest shortfall.

        Parameters
        ----------
        ax : Axes, optional
            Default: a new figure.

        Raises
        ------
        DataError
            No snapshot of the folder could be used.
        """
        from ...result.plot import panels

        if self.frame.empty:
            raise DataError("no snapshot of the folder could be used: " + "; ".join(self.notes.values()))
        lacks = self.frame.groupby("queue", sort=False)["shortfall_share"].sum()
        names = lacks.sort_values(ascending=False, kind="stable").index[:_DRAWN].tolist()
        figure, [axes] = panels(ax, (7.0, 1.2 + 0.5 * len(names)))
        tops = np.maximum(self.frame["share"] + self.frame["shortfall_share"], self.frame["share_entitled"])
        whole = float(tops.max()) or 1.0
        times, keys = pd.DatetimeIndex(sorted({*self.frame["time"]})), ("share", "share_entitled", "shortfall_share")
        steps = times[1:] - times[:-1]
        times = times.append(times[-1:] + (steps.to_series().median() if len(steps) else pd.Timedelta(hours=1)))
        for k, name in enumerate(names):
            rows = self.frame[self.frame["queue"] == name].set_index("time").reindex(times[:-1])
            parts = (0.8 * rows[key].fillna(0.0).to_numpy() / whole for key in keys)
            used, due, less = (np.append(part, part[-1:]) for part in parts)  # the last value also gets an interval
            for low, high, colour, label in ((0, used, "#88ccee", "used"), (used, used + less, "#cc6677", "lacking")):
                named = None if k else label
                axes.fill_between(times, low - k, high - k, step="post", color=colour, linewidth=0, label=named)
            axes.step(times, due - k, where="post", color="#332288", linewidth=1, label=None if k else "entitled")
        axes.set_yticks([0.0 - k for k in range(len(names))], [plain(name) for name in names])
        axes.set(xlabel=f"time (UTC); rows are {whole / 0.8:.2g} of dominant share apart", ylabel="queue")
        axes.tick_params(axis="x", rotation=30)
        axes.legend(fontsize="x-small", frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
        return figure


def shadow(
    folder: str | Path,
    mechanism: str | Mechanism | None = None,
    *,
    half_life: float | str | None = None,
    out: str | Path | None = None,
    tol: float | None = None,
    progress: bool = False,
) -> Shadow:
    """Compare running tasks in the snapshots of a folder with the entitlements of queues.

    Snapshots are files `.json` or `.yaml` of Kubernetes, and folders of Slurm with `nodes.json` and `jobs.json`. Their
    times are the dates and times (UTC) in their names, such as `2026-11-29T1400.json`, or, if a name has no date, the
    last change of the file.

    Parameters
    ----------
    folder : str or Path
        Folder of the snapshots.
    mechanism : str or Mechanism, optional
        Default: the tree of queues that the snapshots declare, otherwise alphaPF-VDS at alpha = 1.
    half_life : float or str, optional
        Half-life of past use, in seconds or as `12h`, `7d`; it reduces the weights of queues. Default: no memory.
    out : str or Path, optional
        A file `.csv`, to which the rows of each snapshot are added when they are computed. Snapshots that are in the
        file already are not computed again.
    tol : float, optional
        Tolerance of certificates, as in `Mechanism.solve`.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Shadow
        Rows of all snapshots; if Ctrl-C ends the computation, those that are done, and `interrupted` is True.

    Raises
    ------
    DataError
        The folder has no snapshot, the file `out` stems from another computation, or an argument is invalid.

    >>> import fairopt as fo
    >>> found = fo.shadow("snapshots", half_life="7d")  # doctest: +SKIP
    >>> found.last[["queue", "share", "share_entitled", "since", "held_by"]]  # doctest: +SKIP
    """
    chosen = mechanisms.one(mechanism) if isinstance(mechanism, str) else mechanism
    life = None if half_life is None else memory.half_life(half_life)
    made, path = Shadow(), None if out is None else Path(out)
    if path is not None and path.suffix != ".csv":
        raise DataError(f"{path}: the table of `fairopt shadow` is written as .csv")
    known = [] if path is None or not path.exists() else _stored(path)
    rest = snapshots(Path(folder))
    made.undated = tuple(name for _, name, _ in rest if _stated(name) is None)
    for (time, name, _), (before, first, _) in zip(rest[1:], rest, strict=False):
        if time == before:
            made.notes[name] = f"it is of the same time as {first}; state different times in their names"
    rest = [one for one in rest if one[1] not in made.notes]
    # The rows of the last snapshot in the file may be incomplete, so this snapshot is computed again.
    done = {name: time for time, name in list(dict.fromkeys((row["time"], row["snapshot"]) for row in known))[:-1]}
    rows = [row for row in known if row["snapshot"] in done]
    if other := [name for time, name, _ in rest if done.get(name, time) != time]:
        raise DataError(f"{path} has another time of {other[0]}; name another file")
    step = _Step(chosen, life, tol)
    for _, some in _frame(rows).groupby("snapshot", sort=False):
        step.resume(some)
    todo = [one for one in rest if one[1] not in done]
    while rows and todo and todo[0][0] < rows[-1]["time"]:
        time, name, read = todo.pop(0)
        try:
            _Step(chosen, life, tol).rows(time, name, read())
        except FairoptError as error:  # the computation that wrote the file left it out as well
            made.notes[name] = str(error)
        else:
            raise DataError(f"{path} ends after {name}, which it lacks; name another file")
    if path is not None:
        files.write(path, _csv(rows, header=True), "shadow")
    try:
        for time, name, read in tqdm(todo, desc="snapshots", unit="snapshot", disable=not progress):
            try:
                new = step.rows(time, name, read())
            except FairoptError as error:
                made.notes[name] = str(error)
                continue
            rows += new
            if path is not None:
                with path.open("a", encoding="utf-8") as file:
                    file.write(_csv(new))
    except KeyboardInterrupt:
        made.interrupted = True
    made.frame = _frame(rows)
    return made


def snapshots(folder: Path) -> list[tuple[pd.Timestamp, str, Any]]:
    """Snapshots in a folder, in order of time, each as its time, its name, and a function that reads it.

    Raises `DataError` if there is no folder, or no snapshot in it.
    """
    from ...workloads.kubernetes import kubernetes
    from ...workloads.slurm import slurm

    if not folder.is_dir():
        raise DataError(f"{folder} is no folder; name one with snapshots of Kubernetes (files) or Slurm (folders)")
    found: list[tuple[Path, Any]] = []
    for path in sorted(folder.iterdir()):
        if path.is_dir() and (path / "nodes.json").is_file():
            found.append((path, slurm))
        elif path.suffix in (".json", ".yaml", ".yml") and path.is_file():
            found.append((path, kubernetes))
    if not found:
        raise DataError(f"{folder} has no snapshot: neither a file .json or .yaml, nor a folder with nodes.json")
    listed = [(pd.Timestamp(_stated(path.name) or _changed(path)).floor("s"), path.name, partial(read, path))
              for path, read in found]  # fmt: skip
    return sorted(listed, key=lambda one: one[:2])


def _stated(name: str) -> datetime | None:
    """Date and time (UTC) in a name, if any."""
    if found := _UNIX.search(name):
        return _utc(int(found[1]))
    for date in _DATE.finditer(name):
        try:
            return datetime(*(int(part or 0) for part in date.groups()))  # type: ignore[arg-type]
        except ValueError:
            continue
    return None


def _changed(path: Path) -> datetime:
    """Time of the last change of a file, or of `nodes.json` in a folder."""
    return _utc((path / "nodes.json" if path.is_dir() else path).stat().st_mtime)


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


class _Step:
    """State that passes from one snapshot to the next: the last allocation, usage, and starts of shortfalls."""

    def __init__(self, mechanism: Mechanism | None, life: float | None, tol: float | None) -> None:
        self.mechanism, self.life, self.tol = mechanism, life, tol
        self.time: pd.Timestamp | None = None
        self.usage, self.share, self.since = dict[str, float](), dict[str, float](), dict[str, pd.Timestamp]()
        self.last: Allocation | None = None

    def resume(self, rows: pd.DataFrame) -> None:
        """Continue after the stored rows of a snapshot."""
        self._age(rows["time"].iloc[0])
        self.share = dict(zip(rows["queue"], rows["share"], strict=True))
        self.since = {row.queue: row.since for row in rows.itertuples() if not pd.isna(row.since)}
        stated = set(rows["mechanism"])
        if self.mechanism is not None and stated != {self._named(str(self.mechanism))}:
            raise DataError(f"the file is of {', '.join(sorted(stated))}; name another file")
        if any((" of past use" in one) != (self.life is not None) for one in stated):
            raise DataError("the file was written with another --half-life; name another file")

    def _named(self, label: str) -> str:
        of_source = self.mechanism in (None, Tree()) and label.partition("(")[0] == Tree.title
        name = Tree.name if of_source else label
        return name if self.life is None else f"{name}, half-life {self.life:g} s of past use"

    def _age(self, time: pd.Timestamp) -> None:
        """Update the usage by the shares that were used since the last snapshot."""
        if self.life is not None and self.time is not None:
            names = [*dict.fromkeys([*self.usage, *self.share])]
            before, now = (np.array([some.get(name, 0.0) for name in names]) for some in (self.usage, self.share))
            seconds = (time - self.time).total_seconds()
            self.usage = dict(zip(names, memory.decayed(before, now, seconds, self.life).tolist(), strict=True))
        self.time = time

    def rows(self, time: pd.Timestamp, name: str, snapshot: Snapshot) -> Rows:
        """Rows of the next snapshot; raise `DataError` if its running tasks are unknown."""
        runs, cluster = snapshot.running, snapshot.cluster
        if runs is None:
            raise DataError("it does not say what runs")
        self._age(time)
        of = members(cluster, snapshot.queues)
        users = [one.users for one in of.values()]
        rule = self.mechanism or Tree()
        queues = snapshot.queues if isinstance(rule, Tree) and rule.queues is None else None
        try:
            answer = self._solved(snapshot, queues, of)
        except DataError:
            lowered = None if queues is None else snapshot.tree[0]  # with quotas lowered until all can be met
            if lowered is None:
                raise
            answer = self._solved(snapshot, lowered.queues, of)
        due, has = answer.arrays.user_tasks, runs.arrays.user_tasks
        judged = judge(runs, answer.mechanism, {answer.mechanism: due}, snapshot)
        below, apart, mechanism = judged.lacks, metrics.distance(runs, due), self._named(answer.mechanism)
        most = {queue: max(one.users, key=below.__getitem__) for queue, one in of.items()}
        self.since = {queue: self.since.get(queue, time) for queue, n in most.items() if below[n] > 0}
        self.share = dict(zip(of, shares(cluster, has, users), strict=True))
        made = []
        for (queue, one), owed in zip(of.items(), shares(cluster, due, users), strict=True):
            n, some = most[queue], one.users
            held = f"{cluster.users[n]}: {judged.held[n].words}" if below[n] > 0 else ""
            amounts = (float(tasks[some].sum()) for tasks in (has, cluster.max_tasks, due, judged.below, below))
            ran, wanted, entitled, lacking, part = amounts
            values = (time, name, queue, one.parent or "", ran, wanted, entitled, self.share[queue], owed, lacking,
                      part, self.since.get(queue), held, self.usage.get(queue, 0.0), apart, mechanism)  # fmt: skip
            made.append(dict(zip(COLUMNS, values, strict=True)))
        return made

    def _solved(self, snapshot: Snapshot, queues: Any, of: Mapping[str, Members]) -> Allocation:
        """Solve a snapshot for its queues, if any, from the last allocation if users, servers and resources agree."""
        cluster, last = snapshot.cluster, self.last
        if self.life is not None:
            cluster, queues = remembered(cluster, queues, of, self.usage)
        mechanism = self.mechanism or (Tree() if queues else mechanisms.one("alphapf-vds(alpha=1)"))
        if isinstance(mechanism, Tree) and queues is not None:
            mechanism = mechanism.declared(queues, snapshot.combine)
        same = last is not None and all(getattr(last.cluster, each) == getattr(cluster, each) for each in _NAMES)
        self.last = mechanism.solve(cluster, self.tol, start=last if same else None)
        return self.last


def _frame(rows: Rows) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.assign(**{name: pd.to_datetime(frame[name], format="ISO8601") for name in ("time", "since")})


def _csv(rows: Rows, header: bool = False) -> str:
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    for name in ("time", "since"):  # a column of times at midnight would be written as dates without times
        frame[name] = [None if pd.isna(time) else time.isoformat() for time in frame[name]]
    return str(frame.to_csv(index=False, header=header, lineterminator="\n"))


def _stored(path: Path) -> Rows:
    """Rows of a stored file, without an incomplete last line; `DataError` if its first line is not `COLUMNS`."""
    lines = files.read(path, "shadow").splitlines(keepends=True)
    if not lines or lines[0].strip() != ",".join(COLUMNS):
        raise DataError(f"{path} is not a table of `fairopt shadow`: its first line must be {','.join(COLUMNS)}")
    whole = csv.DictReader(line for line in lines if line.endswith("\n"))
    texts = ("snapshot", "queue", "parent", "held_by", "mechanism")
    rows = [{name: text if name in (*texts, "time", "since") else float(text) for name, text in row.items()}
            for row in whole]  # fmt: skip
    return list(_frame(rows).to_dict("records"))
