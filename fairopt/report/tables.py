"""Tables for the screen and for papers."""

from __future__ import annotations

import numpy as np

from .._libraries import pd
from ..model._names import apart
from ..study.compare import NOTE


def comparison(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """A frame of `study.compare` for readers: rows that have numbers; footnotes, and a line for each other row.

    Raises
    ------
    KeyError
        `frame` is not one of `fairopt.compare`.
    """
    solved = frame[frame["status"] == "ok"].drop(columns=["pooled", "status", "notes"])
    others = [NOTE] if frame["pooled"].any() else []
    others += [f"{name}: {status}" for name, status in frame["status"].items() if status != "ok"]
    return solved.reset_index(), others


def for_people(frame: pd.DataFrame) -> pd.DataFrame:
    """The same table as strings: shares of a whole as percentages, certificates in powers of ten, four digits.

    The use of a resource (`use_...`, unless it ends in ` (user)`) is in a column of its name; if another column has
    that, in `tasks (use)` and so on.
    """
    shown = {}
    use = [name for name in map(str, frame.columns) if name.startswith("use_") and not name.endswith(" (user)")]
    others = {str(name) for name in frame.columns} - {*use}
    called = dict(zip(use, apart([name.removeprefix("use_") for name in use], others, "use"), strict=True))
    for name, column in frame.items():
        if name in called:
            shown[called[str(name)]] = [_text(value, "{:.1%}") for value in column]
        elif str(name).startswith("+- use_"):
            shown[str(name).replace("use_", "", 1)] = [_text(value, "{:.1%}") for value in column]
        elif name == "certificate":
            shown[str(name)] = [_text(value, "{:.1e}") for value in column]
        elif name == "seconds":
            shown[str(name)] = [_text(value, "{:.2f}") for value in column]
        else:
            shown[str(name)] = [_text(value, "{:.4g}") for value in column]
    return pd.DataFrame(shown, index=frame.index)


def _text(value: object, form: str) -> str:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else form.format(value)
    return str(value)
