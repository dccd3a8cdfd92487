"""The judges: zero at optima known by hand, more when perturbed, never content with something else."""

from __future__ import annotations

import numpy as np
import pytest
from families import EXAMPLE
from hypothesis import given, settings
from strategies import plain_clusters

from fairopt.certificates import Certificate, certify, feasibility, leximin, rational
from fairopt.errors import DataError
from fairopt.mechanisms import GameMechanism, Mechanism, get
from fairopt.model._arrays import Array
from fairopt.model.cluster import Cluster

FIGURE_1 = Cluster([[12, 4, 75], [8, 16, 0]], [[1, 1, 5], [1, 1 / 3, 5], [0.25, 1, 0], [0.5, 1, 0]])
VARIANT = FIGURE_1.with_demand("user4", [1, 0.5, 0])
DRFH_FIGURE = Cluster([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]])


def column(values: list[float]) -> Array:
    return np.array(values)[:, None]


def alpha_pf(alpha: float) -> list[list[float]]:
    """The variant of PF figure 1: users 1 and 2 fill server 1, 3 and 4 share server 2."""
    if alpha <= np.log(2) / np.log(1.5):
        return [[2, 0], [6, 0], [0, 96 / 7], [0, 32 / 7]]
    x3 = 32 / (1 + 2 ** (1 - (0 if np.isinf(alpha) else 1 / alpha)))
    return [[2, 0], [6, 0], [0, x3], [0, 8 - x3 / 4]]


def case(name: str, cluster: Cluster, tasks: object, **parameters: object) -> object:
    text = ",".join(str(value) for value in parameters.values())
    return pytest.param(get(name, **parameters), cluster, np.array(tasks, dtype=float), id=f"{name}({text})")


#: Optima by hand: of DRF 4.1 to 5.2, DRFH figures 1 to 3, PF figure 1.
OPTIMA = [
    case("drf", EXAMPLE, column([3, 2])),
    case("asset-fairness", EXAMPLE, column([63 / 25, 54 / 25])),
    case("ceei", EXAMPLE, column([45 / 11, 18 / 11])),
    case("task-maxmin", EXAMPLE, column([9 / 4, 9 / 4])),
    case("bottleneck-fairness", EXAMPLE, column([45 / 11, 18 / 11])),
    case("alpha-fair", EXAMPLE, column([9 / (1 + 2**0.5), (9 - 9 / (1 + 2**0.5)) / 3]), alpha=2.0),
    case("maxmin", Cluster([[15]], [[1]] * 4, max_tasks=[2, 3, 6, 7]), column([2, 3, 5, 5])),
    case("drfh", DRFH_FIGURE, [[10, 0], [0, 10]]),
    case("tsf", DRFH_FIGURE, [[10, 0], [0, 10]]),
    case("per-server-drf", DRFH_FIGURE, [[5, 1], [1, 5]]),
    case("ps-dsf", DRFH_FIGURE, [[10, 0], [0, 10]]),
    case("drfh", FIGURE_1, [[3, 0], [3, 0], [0, 8], [0, 8]]),
    case("tsf", FIGURE_1, [[5 / 3, 0], [5, 0], [1 / 3, 8], [1 / 3, 8]]),
    case("ps-dsf", FIGURE_1, [[2, 0], [6, 0], [0, 8], [0, 8]]),
    case("ps-dsf", VARIANT, [[2, 0], [6, 0], [0, 32 / 3], [0, 16 / 3]]),
    case("alphapf-vds", FIGURE_1, [[2, 0], [6, 0], [0, 8], [0, 8]], alpha=3.0),
    *(case("alphapf-vds", VARIANT, alpha_pf(alpha), alpha=alpha) for alpha in (0.5, 1.0, 30.0)),
]
TABLE = ("mechanism", "cluster", "tasks")


def certificate(mechanism: Mechanism, cluster: Cluster, tasks: Array, prices: Array | None = None) -> Certificate:
    return mechanism.certify(mechanism.prepare(cluster)[0], tasks, prices)[0]


@pytest.mark.parametrize(TABLE, OPTIMA)
def test_zero_at_optima_by_hand(mechanism: Mechanism, cluster: Cluster, tasks: Array) -> None:
    found = certificate(mechanism, cluster, tasks)
    assert found.feasibility <= 1e-12
    assert found.optimality <= 1e-9, found


@pytest.mark.parametrize(TABLE, OPTIMA)
def test_tasks_given_up_are_noticed(mechanism: Mechanism, cluster: Cluster, tasks: Array) -> None:
    """Those of one user, or of everybody, which costs what is left idle (to first order)."""
    everybody, game = np.ones(len(tasks)), isinstance(mechanism, GameMechanism)
    for who in (everybody, *np.diag(everybody)):
        small, large = (certificate(mechanism, cluster, tasks * (1 - size * who[:, None])) for size in (1e-3, 0.1))
        assert max(small.feasibility, large.feasibility) <= 1e-12
        assert 1e-6 < small.optimality < large.optimality, who
        if who.all():
            assert small.optimality >= 1e-4
            assert 1e-2 <= large.optimality <= (1 if game else np.inf)


@pytest.mark.parametrize(TABLE, OPTIMA)
def test_tasks_that_somebody_takes_in_addition_are_infeasible(
    mechanism: Mechanism, cluster: Cluster, tasks: Array
) -> None:
    """Nobody has room at these optima: by just as much as they use."""
    for who in np.eye(len(tasks)):
        more = tasks * (1 + 0.01 * who[:, None])
        assert 1e-4 < feasibility(mechanism.prepare(cluster)[0], more)[0] <= 0.01 + 1e-12


def test_tasks_moved_between_servers() -> None:
    """Same user tasks: fine for a global mechanism where there is room, a deviation for a game."""
    roomy = Cluster([[4, 4], [4, 4]], [[1, 0], [0, 1]])
    swapped = np.array([[0.0, 2.0], [2.0, 0.0]])  # DRFH figure 1 the wrong way round: 2 each where 10 fit
    for name, worst in (("drfh", 0.1), ("tsf", 0.1), ("ps-dsf", 0.1), ("alphapf-vds", 0.05)):
        assert certificate(get(name), roomy, np.full((2, 2), 4.0)).passes()
        assert certificate(get(name), DRFH_FIGURE, swapped).optimality > worst, name
    assert certificate(get("alphapf-vds", alpha=3.0), DRFH_FIGURE, swapped).optimality > 0.05


# -- never content with something else -----------------------------------------------------------

JUDGED = [
    *(
        get(name)
        for name in ("drf", "drfh", "tsf", "asset-fairness", "task-maxmin", "ceei", "per-server-drf", "ps-dsf")
    ),
    *(get("alpha-fair", alpha=alpha) for alpha in (0.5, 1.0, 2.0, 50.0)),
    *(get("alphapf-vds", alpha=alpha) for alpha in (0.5, 1.0, 3.0)),
    get("fds"),
    get("fds", beta=0.5, lam=2.0),
    get("gfj"),
]


def test_answers_of_other_mechanisms_do_not_pass() -> None:
    """Optimal for something else, so nothing is idle; only the criterion tells them apart."""
    told_apart: set[tuple[str, str]] = set()
    servers = [m for m in JUDGED if not isinstance(m, GameMechanism)]

    @settings(max_examples=3)
    @given(plain_clusters(max_users=4, max_servers=2))
    def law(cluster: Cluster) -> None:
        answers = [(mechanism, mechanism.solve(cluster)) for mechanism in JUDGED]
        for mechanism, best in answers:
            for other, answer in answers:
                off = np.abs(answer.arrays.user_tasks / best.arrays.user_tasks - 1).max()
                if mechanism in servers and off > 0.01 and answer.tasks.shape == best.tasks.shape:
                    found = mechanism.certify(best.cluster, answer.tasks, answer.log_prices)[0]
                    assert not found.passes(), (str(mechanism), str(other), found, off)
                    told_apart.add((str(mechanism), str(other)))

    law()
    assert len(told_apart) > 50


# -- exact numbers of the max-min certificate ----------------------------------------------------


def test_rises_by_hand() -> None:
    """A at 2 tasks, B at 2: CPU 8 of 9, RAM 10 of 18; A is lower (4/9 < 2/3)."""
    found = get("drf").certify(EXAMPLE, column([2, 2]))[0]
    # A: with B's use counted as room, RAM gives (8 + 2)/(4*2) = 1.25; calling the levels equal costs 0.5.
    # Idle alone: min over r of 1/2 and 1.0 = 0.5. So A is owed 0.5; B: idle 1/(3*2), and nobody above.
    assert found.optimality == pytest.approx(0.5)
    assert "user1" in found.worst


def test_a_level_that_is_none_is_that_of_its_lowest_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels that count as one differ: nobody can rise, and by so much the lowest is below the others."""
    monkeypatch.setattr(rational, "WORK", 0)  # or it is known to be the optimum
    apart = Cluster([[1 + 5e-8, 0], [0, 1]], np.eye(2))
    found = get("task-maxmin").certify(apart, np.diag([1 + 5e-8, 1]))[0]
    assert found.optimality == pytest.approx(5e-8, rel=1e-6)
    assert "user2" in found.worst


def test_large_clusters_are_judged_by_hints_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What prices prove is an upper bound; a linear program, where it is too large, is not asked for a better one."""
    cluster = Cluster([[4, 2], [1, 6]], [[1, 1], [1, 2], [3, 1]])
    solved = get("drfh").solve(cluster)
    rough = np.asarray(solved.log_prices) + np.log([[1.0, 1.3], [1.1, 1.0]])
    exactly = certify(cluster, solved.tasks, solved.criterion, rough)[0].residual
    monkeypatch.setattr("fairopt.model.polytope.LARGE", 3)
    monkeypatch.setattr(rational, "WORK", 0)
    monkeypatch.setattr(leximin._linear, "maximise", None)  # calling it would be an error
    roughly = certify(cluster, solved.tasks, solved.criterion, rough)[0].residual
    assert exactly < 1e-6 < roughly < np.inf
    for wrong in (rough[0, 0], rough[..., :1]):
        with pytest.raises(DataError, match=r"it must be \(servers, resources\) = \(2, 2\)"):
            certify(cluster, solved.tasks, solved.criterion, wrong)
