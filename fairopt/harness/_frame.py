"""Frames that show nothing where there is nothing."""

from __future__ import annotations

from typing import Any

from .._libraries import pd


class Blank(pd.DataFrame):  # type: ignore[misc]
    """A frame that is printed with blanks for missing numbers; they are NaN all the same."""

    @property
    def _constructor(self) -> Any:
        return Blank

    def to_string(self, *arguments: Any, **more: Any) -> Any:
        return super().to_string(*arguments, **({"na_rep": ""} | more))

    def to_html(self, *arguments: Any, **more: Any) -> Any:
        return super().to_html(*arguments, **({"na_rep": ""} | more))

    def _repr_html_(self) -> str:
        rows, columns = pd.get_option("display.max_rows"), pd.get_option("display.max_columns")
        return str(self.to_html(max_rows=rows, max_cols=columns, notebook=True))
