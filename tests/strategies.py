"""Random clusters for the law tests: ordinary ones, degenerate ones and those at the edge of double precision."""

from __future__ import annotations

import numpy as np
from families import PARTS, everything
from hypothesis import strategies as st

from fairopt.model.cluster import Cluster


@st.composite
def clusters(
    draw: st.DrawFn,
    styles: tuple[str, ...] = ("nice", "nice", "plain", "plain", "wide"),
    max_users: int = 5,
    max_servers: int = 4,
    max_resources: int = 3,
    **parts: bool,
) -> Cluster:
    """1-5 users, 1-4 servers, 1-3 resources; with weights, zeros, placement, limits and copies, unless switched off.

    Users who can run nowhere come of their own (a resource that no server has, or no eligible server).
    """
    style = draw(st.sampled_from(styles))
    users, servers, resources = (draw(st.integers(1, most)) for most in (max_users, max_servers, max_resources))
    rng = np.random.default_rng(draw(st.integers(0, 99_999)))
    return everything(rng, style, (users, servers, resources), {one for one in PARTS if parts.get(one, True)})


def plain_clusters(**changes: object) -> st.SearchStrategy[Cluster]:
    """Well-conditioned clusters without zeros, constraints, limits or copies: tasks of most mechanisms are unique."""
    arguments: dict[str, object] = {"styles": ("plain",), "limits": False, "placement": False, "zeros": False}
    return clusters(**(arguments | {"copies": False} | changes))
