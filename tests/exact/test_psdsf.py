"""PS-DSF in fractions, by its definition."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
from certificates.reference import definition_4
from families import draw

import fairopt as fo
from fairopt.certificates import feasibility
from fairopt.certificates.rational import is_psdsf, nearest_psdsf


def test_the_definition() -> None:
    """x_1 may be anything from 4 to 74/17."""
    cluster = fo.papers.instance("found-41")
    found = nearest_psdsf(cluster, fo.PSDSF().solve(cluster, 1e-9).tasks)
    assert F(4) <= found.sum(axis=1)[0] <= F(74, 17)
    assert is_psdsf(cluster, found)
    assert not is_psdsf(cluster, found * F(999, 1000))  # nothing is used up
    assert not is_psdsf(cluster, found * F(1001, 1000))  # more than there is
    assert not is_psdsf(cluster, -found)


def test_what_the_definition_in_doubles_says() -> None:
    """Of the answer, and of answers for other weights, without limits or for other servers of the users.

    An answer is exact unless a task count binds: then there may be a continuum, of which any may be found.
    """
    answered = 0
    for seed in range(20):
        cluster = draw("integers", seed, 3, 2, 2)
        if seed % 2:
            cluster = cluster.replace(max_tasks=[1, np.inf, 2][: len(cluster.users)])
        for other in (
            cluster,
            cluster.replace(weight=[1, 2, 3][: len(cluster.users)]),
            cluster.replace(max_tasks=None),
            cluster.replace(eligible=cluster.eligible[:, ::-1]),
        ):
            near = fo.PSDSF().solve(other, 1e-9).tasks
            tasks = nearest_psdsf(other, near)
            if tasks is None:
                assert (near.sum(axis=1) > other.max_tasks - 1e-6).any()
            else:
                found = tasks.astype(float)
                right = feasibility(cluster, found)[0] < 1e-12 and definition_4(cluster, found, 1e-9)
                assert is_psdsf(cluster, tasks) == right
                answered += 1
    assert answered >= 60


def test_what_is_no_simple_fraction() -> None:
    cluster = fo.Cluster([[6]], [[1], [2]])
    assert nearest_psdsf(cluster, np.array([[3.0], [1.5]])) is not None
    assert nearest_psdsf(cluster, np.array([[3.001], [1.4995]])) is None
    assert nearest_psdsf(cluster, np.array([[np.pi], [1.5]])) is None
