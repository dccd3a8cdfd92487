"""The distributed game where alpha is small: tasks of many decades, and what doubles can hold of them."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.errors import DataError, NotConverged
from fairopt.game import best_response
from fairopt.papers import instance

#: Servers whose linear programs (alpha = 0) leave nobody without tasks, and what these give.
TINY = instance("pf-fig1-variant")
EFFICIENT = np.array([2, 6, 96 / 7, 32 / 7])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("alpha", [1e-2, 1e-4, 1e-5, 1e-7, 1e-9])
def test_small_alpha(alpha: float) -> None:
    found = best_response(TINY, alpha)
    assert not found.flagged
    assert found.trace.rounds <= 5
    np.testing.assert_allclose(found.arrays.user_tasks, EFFICIENT, rtol=1e-6)


@pytest.mark.parametrize(("alpha", "tol"), [(9e-10, 1e-6), (1e-320, 1e-6), (1e-6, 1e-10), (1e-4, 1e-12)])
def test_alpha_that_rounding_leaves_nothing_of(alpha: float, tol: float) -> None:
    with pytest.raises(DataError, match=r"alpha is .*; for tol=.* it must be at least .*use AlphaPFVDS\(0\)"):
        best_response(TINY, alpha, tol=tol)


#: User 3 has `0.7^(1/alpha)` of the tasks of the others, who do with 0.4 of one of two resources.
LOSER = fo.Cluster([[1.0, 1.0], [0.3, 0.3], [0.7, 0.7]], [[1.0, 0.4], [0.4, 1.0], [1.0, 1.0]])


@pytest.mark.parametrize("alpha", [1e-2, 1e-3])
def test_users_with_next_to_no_tasks(alpha: float) -> None:
    """What rounding left of totals once kept such users from their tasks."""
    found = best_response(LOSER, alpha)
    least = 0.7 ** (1 / alpha)
    np.testing.assert_allclose(found.arrays.user_tasks, 10 / 7 * np.array([1, 1, least]), rtol=max(1e-9, 2 * least))
    assert found.certificate.passes(1e-9)


def test_users_with_fewer_tasks_than_doubles_can_hold() -> None:
    with pytest.raises(NotConverged, match=r"alpha=1e-05.*user 'user3' has fewer tasks than .*AlphaPFVDS\(0\)"):
        best_response(LOSER, 1e-5)
    found = best_response(LOSER, 1e-5, throw=False)
    assert found.flagged
    assert found.trace.rounds < 10
