"""Which kernel answers to which criterion, and up to which size it is the fastest way."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ...model.criterion import Criterion

#: What kernels solve: `leximin` over a pool or servers, `each`: inside every server; finite alpha; the game's limit.
Kind = Literal["leximin", "each", "global", "game", "psdsf"]

#: Pairs (user, server) up to which kernels are faster than the engines for large problems: theirs is dense algebra.
LARGEST: dict[Kind, int] = {"leximin": 800, "each": 10_000, "global": 400, "game": 500, "psdsf": 400}


def kind_of(rule: Criterion) -> Kind | None:
    """Which kernel answers to a criterion; `None`: none does (floors, alpha = 0, other welfare)."""
    if type(rule) is not Criterion or rule.floor.any() or rule.alpha == 0:
        return None
    if np.isinf(rule.alpha):
        kinds: dict[str, Kind] = {"pool": "leximin", "servers": "leximin", "per_server": "each", "game": "psdsf"}
        return kinds[rule.scope]
    if rule.scope == "per_server":
        return None
    return "game" if rule.scope == "game" else "global"
