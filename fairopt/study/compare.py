"""Comparison of mechanisms on one cluster, in a table with one row per mechanism."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol, TypeGuard

from .. import mechanisms
from ..base.errors import DataError, FairoptError
from ..base.libraries import pd
from ..base.progress import tqdm
from ..core.game.selection import MAYBE_OTHERS
from ..mechanisms import Mechanism
from ..model._same import different_clusters
from ..model.cluster import Cluster, expected
from ..result.allocation import Allocation
from . import metrics


class Problem(Protocol):
    """A modified problem of a mechanism (`fairopt.mechanisms.reference.named_problem.NamedProblem`)."""

    cluster: Cluster

    def allocation(self, label: str | Cluster = ..., *, criterion: Any = ..., tol: float = ...) -> Allocation:
        """Solve the problem, and return its allocation."""


#: Entries of a comparison: a mechanism or its name, an allocation, a problem, a function of a cluster.
Entry = str | Mechanism | Allocation | Problem | Callable[[Cluster], object]


def compare(
    cluster: Cluster,
    chosen: Iterable[Entry] | str | None = None,
    *,
    tol: float | None = None,
    solver: str | None = None,
    entitled: metrics.Entitled = None,
    progress: bool = False,
    details: bool = False,
) -> pd.DataFrame:
    """Compare the allocations of mechanisms, and of other rules, on one cluster.

    Parameters
    ----------
    cluster : Cluster
    chosen : iterable or str, optional
        A text of names such as `"drf, tsf"`, or a list of names such as `"drfh"` or `"alphapf-vds(alpha=3)"`,
        mechanisms, allocations of this cluster, modified problems (`Mechanism.problem`), and functions that return
        tasks (users, servers) of a cluster as `Allocation.of` accepts them. Default: all registered mechanisms.
    tol, solver
        Arguments of `Mechanism.solve`.
    entitled : optional
        Reference of `satisfaction`, `distance` and `complaints`: a mechanism or its name, an allocation, or tasks of
        users. Without a reference the three measures are omitted, as they require another solve.
    progress : bool
        Show a progress bar.
    details : bool
        Show all columns, and a row for every entry, including entries without an allocation.

    Returns
    -------
    DataFrame by mechanism
        Total `tasks`, the tasks of each user if there are at most two, smallest and largest weighted dominant share,
        Jain's index of weighted dominant shares, welfare (sum of dominant shares), mean utilization over resources,
        measures of plug-ins, and measures relative to `entitled` (docs/measures.md); `certified`, True if the
        certificate covers optimality, False if it covers feasibility only. Lines below the table name the entries
        without an allocation. With `details` such entries are rows with missing values, and further columns are
        `status` (`ok`, `not applicable: ...`, or the error), `notes`, utilization per resource (`use_...`), measures
        of users below their task limits, certificate, CPU seconds. Missing values print as blanks.
        `fairopt.plot.compare` plots the frame. Single-pool mechanisms are solved on the pool; on several servers the
        rows of these mechanisms are marked (`DRF*`, column `pooled`) and listed last, as their tasks need not be
        feasible on the servers.

    Raises
    ------
    DataError
        `cluster` is not a cluster, or `chosen` has an unknown mechanism, an allocation of another cluster, or no entry;
        or `entitled` is invalid. Errors of a single entry are reported in its row, and exceptions other than
        `FairoptError` also by a warning.

    >>> import fairopt as fo
    >>> fo.compare(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), ["drf", "utilitarian"])["tasks"].round(3).to_dict()
    {'DRF': 5.0, 'utilitarian': 5.727}
    """
    from .blank import Blank, shown, summary  # deferred, as `blank` imports pandas

    expected(cluster)
    if entitled is not None:
        by = mechanisms.one(entitled) if isinstance(entitled, str) else entitled
        entitled = metrics.entitlement(cluster, by)
    rows = []
    answers = _answers(cluster, chosen, tol, solver)
    for label, answer in tqdm(answers, disable=None, unit="mechanism", leave=False) if progress else answers:
        row: dict[str, object] = {"mechanism": label, "notes": "", "pooled": False, "certified": False}
        try:
            allocation = answer()
            notes = (note for note in allocation.notes if note != MAYBE_OTHERS)  # a note that applies to most games
            row |= summary(allocation) | {"status": "ok", "notes": "; ".join(notes)}
            if entitled is not None:
                row |= {name: one(allocation, entitled) for name, one in metrics.DUE.items()}
            row |= {"pooled": pooled(cluster, allocation), "certified": allocation.certificate.judged}
        except DataError as error:
            row |= {"status": f"{NOT_APPLICABLE}: {error}"}
        except FairoptError as error:
            row |= {"status": f"{type(error).__name__}: {error}"}
        except Exception as error:  # raised by a user's function or a plug-in
            last = traceback.extract_tb(error.__traceback__)[-1]
            said = " ".join(f"{type(error).__name__}: {error}".split())
            row |= {"status": f"{said} ({last.filename}, line {last.lineno})"}
            warnings.warn(f"{label} has no answer: {row['status']}", stacklevel=2)
        rows.append(row)
    first = [*shown(cluster), *(metrics.DUE if entitled is not None else ())]
    more = (*(f"use_{part}" for part in cluster.resources), *metrics.MEASURES, "certificate", "seconds")
    frame = Blank(rows, columns=[*dict.fromkeys(("mechanism", "status", "notes", "pooled", *first, *more))])
    frame = frame.sort_values("pooled", kind="stable")
    frame["mechanism"] = marked(frame["mechanism"], frame["pooled"])
    frame = frame.set_index("mechanism")
    if not details:
        frame, below = frame.loc[frame["status"] == "ok", first], lines(frame, brief=True)
        frame.below = below
    frame._new = True
    return frame


def lines(frame: pd.DataFrame, brief: bool = False) -> tuple[str, ...]:
    """Footnotes of a comparison: the meaning of marks, and reasons for missing allocations.

    In the `brief` form, mechanisms that are not applicable are listed in one line, without reasons.
    """
    without = frame["status"][frame["status"] != "ok"]
    apart = without.index[without.str.startswith(NOT_APPLICABLE) & brief]
    told = [NOTE] * bool(frame["pooled"].any())
    if len(apart):
        told.append(f"not applicable here: {', '.join(apart)} (details=True says why)")
    return (*told, *(f"{name}: {why}" for name, why in without.drop(apart).items()))


#: Label of an entry, and a function that returns its allocation.
Labelled = tuple[str, Callable[[], Allocation]]


def _answers(
    cluster: Cluster, chosen: Iterable[Entry] | str | None, tol: float | None, solver: str | None
) -> list[Labelled]:
    """Labels of all entries, and functions that return their allocations; an invalid entry raises `DataError`."""
    if chosen is None or isinstance(chosen, str | Mechanism | type) or not isinstance(chosen, Iterable):
        every: list[object] = list(mechanisms.chosen(chosen))  # raises an error for a single mechanism
    else:
        every = list(chosen) or list(mechanisms.chosen([]))
    answers: list[Labelled] = []
    near = 1e-6 if tol is None else tol
    for entry in every:
        if isinstance(entry, Allocation):
            if different := different_clusters(entry.cluster, cluster):
                raise DataError(f"the allocation {entry.mechanism} is of another cluster: {different}")
            answers.append((_apart(entry.mechanism, answers), partial(lambda given: given, entry)))
        elif _is_problem(entry):
            if different := different_clusters(entry.cluster, cluster):
                raise DataError(f"a problem is of another cluster: {different}")
            label = _apart("problem", answers)
            answers.append((label, partial(entry.allocation, label, tol=near)))
        elif callable(entry) and not isinstance(entry, type):
            label = _apart(getattr(entry, "__name__", type(entry).__name__), answers)
            answers.append((label, partial(_called, cluster, entry, label, near)))
        else:
            some = mechanisms.chosen([entry])  # type: ignore[list-item]
            answers += [(str(one), partial(one.solve, cluster, tol, solver=solver)) for one in some]
    return answers


def _apart(label: str, answers: list[Labelled]) -> str:
    """Label, with a number appended if another answer has the same label."""
    return f"{label} {len(answers) + 1}" if label in (other for other, _ in answers) else label


def _is_problem(entry: object) -> TypeGuard[Problem]:  # tested by attributes, as the class needs CVXPY
    return hasattr(entry, "allocation") and hasattr(entry, "cluster")


def _called(cluster: Cluster, function: Callable[[Cluster], object], label: str, tol: float) -> Allocation:
    return Allocation.of(cluster, function(cluster), label, tol=tol)


#: Beginning of the status of mechanisms that are not defined on the cluster.
NOT_APPLICABLE = "not applicable"
#: Mark of mechanisms that were solved on the pool.
MARK = "*"
#: Footnote that explains the mark.
NOTE = f"{MARK} answers for the pool, as if all servers were one; their tasks need not fit on the servers"


def pooled(requested: Cluster, found: Allocation) -> bool:
    """True if the mechanism was solved on the pool."""
    return len(found.cluster.servers) < len(requested.servers)


def marked(labels: Iterable[object], which: Iterable[object]) -> list[str]:
    """Labels of mechanisms, with a mark on the mechanisms that were solved on the pool."""
    return [f"{label}{MARK if one is True else ''}" for label, one in zip(labels, which, strict=True)]
