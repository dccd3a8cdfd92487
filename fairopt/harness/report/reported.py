"""The document that `fairopt report --json` prints, as types; `fairopt schema report` prints its JSON Schema.

An infinite or unknown number is null. `version` changes if a key is removed or changes its meaning.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

#: Version of the document.
VERSION = 1

Number = float | None
#: Type of the distance from entitlements, on which an alert can be based.
Distance = Annotated[Number, msgspec.Meta(
    description="dominant shares that would have to change hands until every user runs what it is entitled to: near 0 "
    "where all do (tasks are whole, entitlements are not); alert where it stays above a threshold such as 0.1",
)]  # fmt: skip


class Below(msgspec.Struct):
    """A user that runs fewer tasks than its entitlement, by a whole task or more."""

    user: str
    group: str
    running: float
    entitled: float
    shortfall: float
    shortfall_share: float
    held_by: str
    reasons: dict[str, float]
    could_start: float
    could_give: dict[str, float]


class Above(msgspec.Struct):
    """A user that runs more tasks than its entitlement, by a whole task or more."""

    user: str
    group: str
    running: float
    entitled: float
    excess: float
    leaving: float


class Start(msgspec.Struct):
    """Whole tasks that would start next on a node if nothing is stopped."""

    user: str
    node: str
    tasks: int


class Verdict(msgspec.Struct):
    """Running tasks judged by the entitlements of a mechanism; `below` and `above` are in order of decreasing share."""

    mechanism: str
    sentences: list[str]
    distance: Distance
    satisfaction: Number
    complaints: Number
    users_below: int
    below: list[Below]
    above: list[Above]
    next_starts: list[Start]


class User(msgspec.Struct):
    """A user; `entitled` is by mechanism. Numbers that depend on running tasks are null if these tasks are unknown."""

    user: str
    group: str
    running: Number
    wanted: Number
    weight: float
    entitled: dict[str, Number]
    satisfaction: Number
    below: Number
    limited_by: str
    could_give: str | None


class WhatIf(msgspec.Struct):
    """A change, the entitlement after it, and how many more tasks would then start if none is stopped, or null."""

    change: str
    entitled: float
    starts: Number


class Stage(msgspec.Struct):
    """Users of a queue that stop at a level of max-min filling, each with its bottleneck; `others` counts the rest."""

    level: float
    users: list[str]
    limited_by: dict[str, str]
    others: int


class Why(msgspec.Struct):
    """Explanation of the running tasks of a user or queue (`--user`, `--queue`): bottleneck, competitors and what-ifs.

    Tasks of a queue are sums over its users, and shares are dominant shares of the cluster; only queues have stages.
    """

    user: str
    weight: float
    running: float
    wanted: Number
    waiting: dict[str, float]
    capped: dict[str, float]
    leaving: float
    entitled: float
    entitled_limited_by: str
    shortfall: float
    held_by: str
    holders: dict[str, float]
    could_start: float
    starts: int
    starts_before: int
    what_if: list[WhatIf]
    share: float
    share_entitled: float
    stages: list[Stage]


class Report(msgspec.Struct):
    """A report on the users of a cluster; docs/explorer.md explains its tables."""

    version: int
    source: str
    verdict: Verdict | None
    measures: list[dict[str, Any]]
    users: list[User]
    groups: list[dict[str, Any]]
    resources: list[dict[str, Any]]
    margins: list[dict[str, Any]]
    changes: list[dict[str, Any]] | None
    why: list[Why] | None
    notes: list[str]
