"""Frames of results: default columns, blanks in place of missing numbers, and remarks below the table."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ..base.libraries import pd
from ..base.names import apart
from ..model.cluster import Cluster
from ..result.allocation import Allocation
from .metrics import KNOWN, MEASURES

#: Largest number of users whose tasks are columns, so that a table has at most eight columns.
_FEW = 2
#: Measures that are shown with `details` only, to keep the table narrow. So is welfare, if the tasks of users are
#: columns.
_DETAILS = ("min_share_wanting", "jain_wanting")
#: Columns that are not measures.
_OTHERS = ("status", "notes", "pooled", "certified", "certificate", "seconds", "steps")


class Blank(pd.DataFrame):  # type: ignore[misc]
    """Frame that prints NaN as a blank, or as "all met" in measures over users with unmet demand.

    Wide tables print in parts, without an ellipsis in place of columns. The lines `below` are printed below the table,
    and below tables that are derived from it.
    """

    _metadata = ["below"]

    below: tuple[str, ...] = ()
    #: A new table prints numbers by `_text`; a table derived from it, for example by `round`, has the format of pandas.
    _new = False

    @property
    def _constructor(self) -> Any:
        return Blank

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except KeyError as error:
            if "certificate" in self.columns:
                raise
            raise KeyError(f"{error.args[0]}; details=True has all columns") from None

    def _said(self) -> pd.DataFrame:
        answered = pd.DataFrame(self).select_dtypes("number").notna().any(axis=1)
        names = [name for name in self if str(name).endswith("_wanting") and self.columns.is_unique]
        said = {name: self[name].astype(object).mask(answered & self[name].isna(), "all met") for name in names}
        return pd.DataFrame(self.assign(**said))

    def to_string(self, *arguments: Any, **more: Any) -> Any:
        return self._said().to_string(*arguments, **({"na_rep": ""} | more))

    def to_html(self, *arguments: Any, **more: Any) -> Any:
        return self._said().to_html(*arguments, **({"na_rep": ""} | more))

    def _printed(self, html: bool) -> str:
        """Text of the representation; wide tables are printed in parts, not cut."""
        table = self._said().map(_text) if self._new else self
        with pd.option_context("display.max_columns", pd.get_option("display.max_columns") or None):
            if html:
                return str(table.to_html(na_rep="", notebook=True, max_rows=pd.get_option("display.max_rows")))
            return str(pd.DataFrame.__repr__(table))

    def __repr__(self) -> str:
        return "\n".join([self._printed(html=False), *self.below])

    def _repr_html_(self) -> str:
        return self._printed(html=True) + "".join(f"<p>{escape(line)}</p>" for line in self.below)


def _text(value: object) -> object:
    """Text of a float with four decimal places (below 1e-4 in scientific notation), blank for NaN; others unchanged."""
    if not isinstance(value, float):
        return value
    return "" if value != value else f"{value:.4f}" if value == 0 or abs(value) >= 1e-4 else f"{value:.1e}"


def summary(allocation: Allocation) -> dict[str, Any]:
    """Measures by name, and tasks by user for at most two users; the key of a user named `jain` is `jain (tasks)`."""
    cluster, row = allocation.cluster, allocation.summary()
    if len(cluster.users) > _FEW:
        return row
    tasks = np.where(allocation.arrays.nothing, 0.0, allocation.arrays.user_tasks)
    return row | dict(zip(_named(cluster), tasks.tolist(), strict=True))


def _named(cluster: Cluster) -> list[str]:
    taken = [*KNOWN, *_OTHERS, *(f"use_{one}" for one in cluster.resources)]
    return apart(cluster.users, taken, "tasks")


def shown(cluster: Cluster) -> list[str]:
    """Columns that are shown without `details`, in order: at most eight, and the measures of plug-ins."""
    few = len(cluster.users) <= _FEW
    first, *measures = [name for name in MEASURES if name not in _DETAILS and not (few and name == "welfare")]
    return [first, *(_named(cluster) if few else []), *measures, "certified"]
