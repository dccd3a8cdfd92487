"""PF section 6, mechanisms side by side on the same days, says where it went."""

from __future__ import annotations

from typing import Any, NoReturn

from ..errors import DataError


def pf_section6(*_: Any, **__: Any) -> NoReturn:
    """Say where it went.

    Raises
    ------
    DataError
        Always.
    """
    raise DataError(
        "pf_section6 is an experiment now: fairopt sweep pf_semidynamic, or a file of yours with policies = "
        "['fluid:ps-dsf', ...] on [workloads], whose tables have 95% intervals over days (docs/experiments.md)"
    )
