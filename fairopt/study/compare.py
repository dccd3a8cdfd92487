"""One cluster, many mechanisms, one row each."""

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
    """A changed problem of a mechanism, `fairopt.mechanisms.reference.named_problem.NamedProblem`."""

    cluster: Cluster

    def allocation(self, label: str | Cluster = ..., *, criterion: Any = ..., tol: float = ...) -> Allocation:
        """Its answer."""


#: What may be compared: a mechanism or its name, an allocation, a problem, a function of a cluster.
Entry = str | Mechanism | Allocation | Problem | Callable[[Cluster], object]


def compare(
    cluster: Cluster,
    chosen: Iterable[Entry] | None = None,
    *,
    tol: float | None = None,
    solver: str | None = None,
    entitled: metrics.Entitled = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Several answers for one cluster: of mechanisms, and of anybody else.

    Parameters
    ----------
    cluster : what is shared, and among whom
    chosen : by default all registered mechanisms
        Names such as `"drfh"` or `"alphapf-vds(alpha=3)"`, mechanisms, allocations of this cluster, changed problems
        (`Mechanism.problem`), and functions that return tasks of a cluster as `Allocation.of` takes them.
    tol, solver : as in `Mechanism.solve`
    entitled : whose answer `satisfaction`, `distance` and `complaints` are relative to
        A mechanism or its name, an allocation, or the tasks of users. By default these three are left out: they cost a
        solve of their own.
    progress : show a progress bar

    Returns
    -------
    A frame with one row per answer: `status` (`ok`, `not applicable: ...`, or the error of what failed, whose numbers
    are missing) and `notes`; `certified`, whether a criterion judged it, or its tasks are only known to be feasible, or
    there are none; tasks in all, smallest and largest weighted dominant share, utilization per resource (`use_...`)
    and its mean over resources, Jain's index of weighted dominant shares, welfare (sum of dominant shares), measures of
    who is below what it is `entitled` to where that is given (docs/measures.md), certificate, seconds. What is missing,
    as the use of a resource that no server has, is printed as a blank. `fairopt.plot.compare` draws the frame.
    Single-pool mechanisms are solved on the pool: where there are several servers these rows are `pooled`, marked
    (`DRF*`), and stand last, as their tasks need not fit on the servers.

    Raises
    ------
    DataError
        `cluster` is not a cluster, or `chosen` names a mechanism that there is not, holds an allocation of another
        cluster, or is empty; or `entitled` is none of these.

    What a mechanism or a function raises is in its row; what is no `FairoptError` is also a warning.
    """
    from .blank import Blank  # a class of pandas, which footnotes do without

    expected(cluster)
    if entitled is not None:
        by = mechanisms.one(entitled) if isinstance(entitled, str) else entitled
        entitled = metrics.entitlement(cluster, by)
    rows = []
    answers = _answers(cluster, chosen, tol, solver)
    for label, answer in tqdm(answers, disable=None if progress else True, unit="mechanism", leave=False):
        row: dict[str, object] = {"mechanism": label, "notes": "", "pooled": False, "certified": False}
        try:
            allocation = answer()
            notes = (note for note in allocation.notes if note != MAYBE_OTHERS)  # what is said of most games
            row |= allocation.summary() | {"status": "ok", "notes": "; ".join(notes)}
            if entitled is not None:
                row |= {name: one(allocation, entitled) for name, one in metrics.DUE.items()}
            row |= {"pooled": pooled(cluster, allocation), "certified": allocation.certificate.judged}
        except DataError as error:
            row |= {"status": f"not applicable: {error}"}
        except FairoptError as error:
            row |= {"status": f"{type(error).__name__}: {error}"}
        except Exception as error:  # of somebody's function, or a plug-in
            last = traceback.extract_tb(error.__traceback__)[-1]
            said = " ".join(f"{type(error).__name__}: {error}".split())
            row |= {"status": f"{said} ({last.filename}, line {last.lineno})"}
            warnings.warn(f"{label} has no answer: {row['status']}", stacklevel=2)
        rows.append(row)
    columns = ["mechanism", "status", "notes", "pooled"]
    for name in metrics.MEASURES:
        columns += [*(f"use_{part}" for part in cluster.resources if name == "utilization"), name]
    columns += [*(metrics.DUE if entitled is not None else ()), "certified", "certificate", "seconds"]
    frame = Blank(rows, columns=columns).sort_values("pooled", kind="stable")
    frame["mechanism"] = marked(frame["mechanism"], frame["pooled"])
    return frame.set_index("mechanism")


#: What an answer is called, and how it comes about.
Labelled = tuple[str, Callable[[], Allocation]]


def _answers(cluster: Cluster, chosen: Iterable[Entry] | None, tol: float | None, solver: str | None) -> list[Labelled]:
    """A label and an answer of every entry."""
    if chosen is None or isinstance(chosen, str | Mechanism | type) or not isinstance(chosen, Iterable):
        every: list[object] = list(mechanisms.chosen(chosen))  # or an error
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
    """The label, with its place behind where another answer has it already."""
    return f"{label} {len(answers) + 1}" if label in (other for other, _ in answers) else label


def _is_problem(entry: object) -> TypeGuard[Problem]:  # by what it has: its class comes with CVXPY
    return hasattr(entry, "allocation") and hasattr(entry, "cluster")


def _called(cluster: Cluster, function: Callable[[Cluster], object], label: str, tol: float) -> Allocation:
    return Allocation.of(cluster, function(cluster), label, tol=tol)


#: Stands behind the name of a mechanism that answered for the pool; `NOTE` is its footnote.
MARK = "*"
NOTE = f"{MARK} answers for the pool, as if all servers were one; their tasks need not fit on the servers"


def pooled(requested: Cluster, found: Allocation) -> bool:
    """True if the mechanism pooled the servers."""
    return len(found.cluster.servers) < len(requested.servers)


def marked(labels: Iterable[object], which: Iterable[object]) -> list[str]:
    """The labels of mechanisms, marked where they answered for the pool."""
    return [f"{label}{MARK if one is True else ''}" for label, one in zip(labels, which, strict=True)]
