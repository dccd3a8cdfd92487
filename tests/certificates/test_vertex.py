"""Which tasks are unique at alpha = 0, held against the linear programs that say how far each may go."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.optimize import linprog

import fairopt as fo
from fairopt.model.polytope import Polytope

SLACK, WIDTH = 1e-11, 1e-5


def cluster(seed: int, kind: str) -> fo.Cluster:
    rng = np.random.default_rng(seed)
    users, servers, resources = rng.integers(2, 7), rng.integers(1, 5), rng.integers(1, 4)
    if kind == "uniform":
        return fo.Cluster(rng.uniform(5, 40, (servers, resources)), rng.uniform(1, 8, (users, resources)))
    limits = rng.integers(1, 12, users) if kind == "limited" else None
    shapes = (rng.integers(5, 40, (servers, resources)), rng.integers(1, 8, (users, resources)))
    return fo.Cluster(*shapes, max_tasks=limits)


def widths(found: fo.Allocation) -> np.ndarray:
    """Range of every user's tasks among all optima, relative to the most that it can have, (users,)."""
    polytope = Polytope(found.cluster, found.cluster.max_tasks)
    rule, z = found.criterion, polytope.fractions(found.tasks)
    share = polytope.gamma * np.exp(
        rule.log_marginal_of(np.ones(len(polytope.users)), polytope.pair_user, polytope.pair_server)
    )
    game = rule.scope == "game"
    parts = [polytope.pair_server == i for i in range(found.cluster.shape[1])] if game else [share > 0]
    welfare = sp.csr_matrix([-(share * part) / (share * part @ z) for part in parts])
    rows = sp.vstack([polytope.use, polytope.use_of_limit, welfare])
    bounds = np.r_[np.ones(rows.shape[0] - len(parts)), np.full(len(parts), SLACK - 1)]
    options = dict.fromkeys(("primal_feasibility_tolerance", "dual_feasibility_tolerance"), 1e-10)
    most = [
        [linprog(way * tasks, A_ub=rows, b_ub=bounds, options=options).fun for way in (1, -1)]
        for tasks in polytope.tasks.toarray()
    ]
    return -np.sum(most, axis=1) / polytope.reach


@pytest.mark.parametrize("kind", ["uniform", "whole", "limited"])
def test_unique_tasks_are_told_from_others(kind: str) -> None:
    """Never claimed where another optimum has other tasks, and where there is none always, but for limits in games."""
    claimed = 0
    for seed in range(200, 206):
        shared = cluster(seed, kind)
        for mechanism in ("utilitarian", "alphapf-vds(alpha=0)"):
            found = fo.solve(shared, mechanism)
            certificate, wide = found.certificate, widths(found) > WIDTH
            unique = max(certificate.residual, 1e-15) * certificate.conditions < WIDTH
            assert not (unique & wide).any()
            if kind != "limited" or mechanism == "utilitarian":
                assert (unique | wide).all()
            claimed += int(unique.sum())
            texts = [line.split()[1] for line in repr(found).splitlines()[2 : 2 + len(unique)]]
            assert [text == "?" for text in texts] == (
                ~unique & ~found.arrays.nothing & (found.user_tasks > 0)
            ).tolist()
            assert ("not proved to be unique" in repr(found)) == (not unique.all())
    assert claimed > 5


def test_tasks_follow_the_data_as_their_condition_numbers_say() -> None:
    """To first order: all data change by a millionth, at random, and tasks are solved anew."""
    rng, change = np.random.default_rng(0), 1e-6
    shared, rule = fo.papers.instance("pf-fig1-variant"), fo.Utilitarian()
    found = rule.solve(shared, 1e-9)
    for _ in range(5):
        capacity, demand = (x * np.exp(rng.uniform(-change, change, x.shape)) for x in (shared.capacity, shared.demand))
        moved = rule.solve(shared.replace(capacity=capacity, demand=demand), 1e-9).arrays.user_tasks
        apart = np.abs(moved - found.arrays.user_tasks) / np.maximum(found.arrays.user_tasks, 1e-9)
        known = np.isfinite(found.certificate.conditions) & (found.arrays.user_tasks > 1e-6)
        assert (apart[known] <= found.certificate.conditions[known] * change).all()


def test_a_condition_number_at_a_vertex_by_hand() -> None:
    """The optimum (45/11, 18/11) where both resources are exhausted, of the utilitarian and of the game."""
    for mechanism in (fo.Utilitarian(), fo.AlphaPFVDS(0), fo.AlphaFair(0)):
        found = mechanism.solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]))
        assert repr(found).splitlines()[2].split()[1] == "4.09091"
        assert len(found.uncertain()) == 0
        assert found.notes == ()
        assert_allclose(found.user_tasks, [45 / 11, 18 / 11])


def test_tasks_below_what_is_resolved_are_shown_as_none() -> None:
    """The interior point leaves some dust to a user that gets nothing; a conic solver does without a certificate."""
    shared = fo.Cluster([[9, 18], [30, 4]], [[1, 4], [3, 1], [2, 2]], users=["a", "b", "c"])
    found = fo.Utilitarian().solve(shared)
    dusty = replace(found, tasks=found.tasks + np.where(found.arrays.user_tasks < 1e-6, 1e-10, 0.0)[:, None])
    given = fo.Allocation.of(shared, dusty.tasks)
    for one in (dusty, given):
        assert 0 < one.arrays.user_tasks[2] < 1e-9
        assert repr(one).splitlines()[4].split() == ["c", "0", "0", "1", "0", "0"]
        assert "e-1" not in one._repr_html_().partition("</table>")[0]
        assert one.summary()["min_share"] == 0
    other = fo.Allocation.of(fo.Cluster([[1e12]], [[1.0], [1.0]]), [[3], [7e11]])
    assert repr(other).splitlines()[2].split()[1] == "3"  # few tasks where there is much room are no dust
    assert fo.compare(shared, [dusty])["min_share"].tolist() == [0]
