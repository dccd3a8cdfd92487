"""The equations of an active set: as the interior point, from right and wrong guesses; no proof of what is off."""

from __future__ import annotations

import time
from decimal import Decimal

import numpy as np
import pytest
from families import FAMILIES, draw

import fairopt as fo
from fairopt.model.cluster import Cluster

from . import answers, reference
from .active import Root, refined
from .answers import Kind, dominant_shares
from .conditions import Conditions, conditions, decimals, many_digits, refuted
from .interior import State, System

KINDS: tuple[Kind, ...] = ("global", "game")
#: Who is at its limit costs next to nothing beside what its tasks are worth: 1e20 times less.
CHEAP = Cluster([[1, 1], [1, 1]], [[1, 1], [1, 0.5], [1, 0.25]], max_tasks=[0.1, np.inf, np.inf])


def of_kind(cluster: Cluster, alpha: float, kind: Kind) -> Conditions:
    return conditions(cluster, alpha, None if kind == "game" else dominant_shares(cluster))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("alpha", [0.5, 3])
def test_as_the_interior_point(family: str, alpha: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of users are unique in a global program."""
    cluster = draw(family, 1, 4, 4)
    fast = reference(cluster, alpha, "global")
    monkeypatch.setattr(answers, "refined", lambda system, at: None)
    slow = reference(cluster, alpha, "global")
    assert fast is not None
    if slow is None:
        assert family == "limits", "what ties to rounding is beyond the interior point"
        return
    np.testing.assert_allclose(fast.user_tasks, slow.user_tasks, rtol=1e-14)


@pytest.mark.parametrize("family", ["nested", "weights", "limits"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_guess_is_put_right_or_given_up(family: str, kind: Kind) -> None:
    """Everybody everywhere, or a task somewhere taken away: what is returned is an answer."""
    found = 0
    for seed in range(5):
        cluster = draw(family, seed, 4, 4)
        mechanism = fo.AlphaPFVDS(3) if kind == "game" else fo.AlphaFair(3)
        # From afar none is found of two games in thirty; what is found from nearby is proved all the same.
        exact = reference(cluster, 3, kind, near=mechanism.solve(cluster).tasks)
        assert exact is not None
        with many_digits():
            of = of_kind(cluster, 3, kind)
            unit = decimals(exact.user_tasks)
            system = System(of, unit, exact=False)
            parts = exact.tasks[of.user, of.server] / exact.user_tasks[of.user]
            rows = np.zeros(system.taken.shape[1])
            price = exact.log_prices[system.server, system.resource] - system.base[system.server].astype(float)
            rows[: len(price)] = np.exp(price / 3)
            everywhere = np.maximum(parts, 0.1)
            for x in (everywhere, np.where(parts == parts.min(), 0.0, parts)):
                root = refined(system, State(x, np.where(x > 0, 0.0, np.inf), rows, 1e-9 * np.ones(len(rows))))
                if root is not None and kind == "global":
                    found += 1
                    assert refuted(of, root.tasks, root.log_prices, Decimal("1e-16")) is None
                    np.testing.assert_allclose(of.tasks_of(root.tasks).astype(float), exact.user_tasks, rtol=1e-14)
    assert kind == "game" or found >= 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", ["plain", "limits"])
def test_a_root_that_is_off_is_no_answer(kind: Kind, family: str) -> None:
    """By 1e-12 in somebody's tasks or in somebody's price, or with a last step that is too long."""
    cluster = draw("nested" if family == "plain" else family, 2, 4, 4)
    exact = reference(cluster, 2, kind)
    assert exact is not None
    with many_digits():
        of = of_kind(cluster, 2, kind)
        unit = decimals(exact.user_tasks)
        system = System(of, unit, exact=False)
        x = exact.tasks[of.user, of.server] / exact.user_tasks[of.user]
        price = exact.log_prices[system.server, system.resource] - system.base[system.server].astype(float)
        v = np.zeros(system.taken.shape[1])
        v[: len(price)] = np.exp(price / 2)
        used = 1 - x @ system.taken
        v[len(price) :] = 0.5 * (used[len(price) :] < 1e-9)
        root = refined(system, State(x, np.where(x > 0, 0.0, np.inf), v, np.where(used < 1e-9, 0.0, np.inf)))
        assert root is not None
        assert answers._answer(of, root) is not None
        assert answers._answer(of, Root(root.tasks, root.log_prices, Decimal("1e-12"))) is None
        less = root.tasks.copy()
        less[int(np.argmax(less))] *= 1 - Decimal("1e-12")
        assert answers._answer(of, Root(less, root.log_prices, root.step)) is None
        assert answers._answer(of, Root(root.tasks, root.log_prices + Decimal("1e-12"), root.step)) is None


def test_prices_far_below_what_tasks_are_worth() -> None:
    """Alpha 50: user 1 has a tenth of a task where others have one; it pays as much on either server, to all digits."""
    found = reference(CHEAP, 50, "global")
    assert found is not None
    assert found.user_tasks[0] == 0.1
    again = reference(CHEAP, 50, "global", near=found.tasks)
    assert again is not None
    np.testing.assert_allclose(again.user_tasks, found.user_tasks, rtol=1e-15)


def test_no_search_goes_on_for_long() -> None:
    cluster = draw("limits", 0, 8, 8)
    began = time.perf_counter()
    reference(cluster, 50, "game", seconds=0)
    assert time.perf_counter() - began < 5
