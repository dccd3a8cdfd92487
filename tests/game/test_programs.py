"""The game as programs: unchanged it ends where engines do, changed it keeps what was asked."""

from __future__ import annotations

import numpy as np
import pytest
from families import EXAMPLE
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.errors import DataError, NotConverged, SolverError

CLUSTER = fo.Cluster(
    [[6, 10], [5, 2]], [[1, 4], [3, 1], [1, 1]], [1, 2, 0.5], users=["a", "b", "c"], servers=["s1", "s2"],
    max_tasks=[np.inf, 1.5, np.inf],
)  # fmt: skip


@pytest.mark.parametrize("alpha", [1.0, 3.0, 20.0, np.inf])
@pytest.mark.parametrize("order", [None, ["s2", "s1"]])
def test_programs_come_to_the_equilibrium(alpha: float, order: list[str] | None) -> None:
    mechanism, free = fo.AlphaPFVDS(alpha), CLUSTER.replace(max_tasks=None)  # limits may leave many equilibria
    found, known = mechanism.game(free).solve(order), mechanism.solve(free)
    assert found.certificate.judged
    assert not found.flagged
    assert_allclose(found.arrays.user_tasks, known.arrays.user_tasks, rtol=1e-4)
    assert found.trace is not None
    assert found.trace.frame.attrs["tasks"].shape == (found.trace.rounds, 3, 2)
    assert_allclose(found.trace.frame.attrs["tasks"][-1], found.tasks, atol=1e-6)


@pytest.mark.parametrize("alpha", [1.0, 8.0, np.inf])
def test_a_changed_game_keeps_what_is_asked(alpha: float) -> None:
    game = fo.AlphaPFVDS(alpha).game(CLUSTER)
    free = game.solve()
    most, least = 0.5 * free.tasks[2, 1] + 0.1, free.tasks[0, 0] + 0.1
    changed = game.bounding("c", "s2", most=most).bounding("a", "s1", least=least)
    both = changed.adding("s1", few=lambda p: p.tasks["b", "s1"] <= 0.4)
    found = both.solve()
    assert found.tasks[2, 1] <= most * (1 + 1e-6)
    assert found.tasks[0, 0] >= least * (1 - 1e-6)
    assert found.tasks[1, 0] <= 0.4 * (1 + 1e-6)
    assert "a changed game" in found.notes[0]
    assert not found.certificate.judged
    # Responses again change nothing; the game that it was made of is as it was.
    again = both.solve(start=found, tol=1e-5).trace
    assert again is not None
    assert again.rounds == 1
    assert not game.changed
    assert "most of c" in str(both.problems["s2"])


def test_a_game_shows_each_different_program_once() -> None:
    cluster = fo.Cluster([[2, 2]] * 5, [[3, 2], [1, 4]], users=["a", "b"])
    game = fo.AlphaPFVDS(3).game(cluster).bounding("b", cluster.servers[1], most=0.1)
    text = repr(game)
    assert text.startswith("alphaPF-VDS(alpha=3), changed: 2 users")
    assert text.count("maximize weight @ (power(virtual_share / weight, -2) / -2)") == 2
    assert "\nserver1, server3, server4, 1 more:\n" in text
    assert "\nserver2:\n" in text
    assert "most of b: tasks[1, 1] <= 0.1" in text
    assert "tasks = x @ e[server] + others" in text


def test_what_a_game_refuses() -> None:
    game = fo.PSDSF().game(CLUSTER)
    for wrong in (lambda: game.adding("s9"), lambda: game.solve(["s9"])):
        with pytest.raises(DataError, match=r"no program of a server 's9'; give (one|some) of s1, s2"):
            wrong()
    with pytest.raises(SolverError, match=r"server 's1' has no answer beside .*infeasible"):
        game.bounding("a", "s1", least=100).solve()
    with pytest.raises(NotConverged, match="allow more rounds"):
        game.solve(max_rounds=1)
    assert game.solve(max_rounds=1, throw=False).stats.status == "max_rounds reached"
    with pytest.raises(DataError, match=r"use game\(cluster\), which has one for every server"):
        fo.PSDSF().problem(EXAMPLE)
