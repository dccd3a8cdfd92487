"""Conversion of a report to JSON, with the types of `fairopt.harness.report.reported`."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import msgspec
import numpy as np

from ...base.libraries import pd
from ...harness.report import reported
from .standing import Standing
from .verdict import Verdict, in_shares, largest, next_starts
from .view import SHOWN

#: Names of measures by their titles in the report.
_NAMES = {title: name for name, title in SHOWN.items()}
_OF_USERS = {field.name for field in msgspec.structs.fields(reported.User)}


def document(found: Standing, why: list[reported.Why] | None = None) -> dict[str, Any]:
    """JSON document of a report; infinite and unknown numbers are null."""
    users = []
    for row in _records(found.users):
        known = {name: value for name, value in row.items() if name in _OF_USERS}
        due = {str(column): _plain(value) for column, value in zip(found.users, row.values(), strict=True)
               if _snake(str(column)) not in _OF_USERS}  # fmt: skip
        optional = dict.fromkeys(("running", "satisfaction", "below", "could_give"))
        users.append(reported.User(**(optional | known | {"entitled": due})))
    return dict(msgspec.to_builtins(reported.Report(
        version=reported.VERSION,
        source=found.session.source,
        verdict=None if found.judged is None else _verdict(found, found.judged),
        measures=_records(found.measures),
        users=users,
        groups=_records(found.groups),
        resources=_records(found.resources),
        margins=_records(found.margins),
        changes=None if found.changes is None else _records(found.changes),
        why=why,
        notes=list(found.notes),
    )))  # fmt: skip


def _snake(title: str) -> str:
    return _NAMES.get(title) or re.sub(r"\W+", "_", title.lower()).strip("_")


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{_snake(str(name)): _plain(value) for name, value in row.items()} for row in frame.to_dict("records")]


def _verdict(found: Standing, judged: Verdict) -> reported.Verdict:
    cluster, lacks, measures = judged.runs.cluster, judged.lacks.tolist(), _records(found.measures)[0]
    has, due = judged.runs.arrays.user_tasks.tolist(), judged.due.tolist()
    # The first four fields of `Below` and `Above`: a user, its group, its running tasks and its entitlement.
    rows = list(zip(cluster.users, found.users["group"], has, due, strict=True))
    below = [
        reported.Below(*rows[n], float(judged.below[n]), lacks[n], held.words, dict(held.reasons), held.could_start,
                       judged.over(n))
        for n in largest(judged.lacks) for held in [judged.held[n]]
    ]  # fmt: skip
    above = [reported.Above(*rows[n], float(judged.above[n]), judged.leaving.get(cluster.users[n], 0.0))
             for n in largest(in_shares(cluster, judged.above))]  # fmt: skip
    starts = Counter((cluster.users[n], cluster.servers[i]) for n, i in next_starts(judged.runs, judged.due))
    return reported.Verdict(
        judged.mechanism, list(judged.sentences), measures["distance"], measures["satisfaction"],
        measures["complaints"], len(below), below, above,
        [reported.Start(user, node, tasks) for (user, node), tasks in starts.items()],
    )  # fmt: skip
