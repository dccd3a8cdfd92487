"""Frames with missing numbers."""

from __future__ import annotations

from typing import Any

from ..base.libraries import pd


class Blank(pd.DataFrame):  # type: ignore[misc]
    """A frame whose NaN print as blanks, or as "all met" in measures over users with unmet demand."""

    @property
    def _constructor(self) -> Any:
        return Blank

    def _said(self) -> pd.DataFrame:
        answered = pd.DataFrame(self).select_dtypes("number").notna().any(axis=1)
        names = [name for name in self if str(name).endswith("_wanting") and self.columns.is_unique]
        said = {name: self[name].astype(object).mask(answered & self[name].isna(), "all met") for name in names}
        return pd.DataFrame(self.assign(**said))

    def to_string(self, *arguments: Any, **more: Any) -> Any:
        return self._said().to_string(*arguments, **({"na_rep": ""} | more))

    def to_html(self, *arguments: Any, **more: Any) -> Any:
        return self._said().to_html(*arguments, **({"na_rep": ""} | more))

    def _repr_html_(self) -> str:
        rows, columns = pd.get_option("display.max_rows"), pd.get_option("display.max_columns")
        return str(self.to_html(max_rows=rows, max_cols=columns, notebook=True))
