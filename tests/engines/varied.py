"""The interior point of one level with other options, for tests to put in its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fairopt.engines.maxmin.level import BoundedLevel
from fairopt.engines.maxmin.level_interior import highest
from fairopt.engines.maxmin.options import LevelOptions


def varied(**changes: Any) -> Callable[..., BoundedLevel | None]:
    """`level_interior.highest` with some options changed."""

    def with_changes(*given: Any, options: LevelOptions, **named: Any) -> BoundedLevel | None:
        return highest(*given, options=replace(options, **changes), **named)

    return with_changes
