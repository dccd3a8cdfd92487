"""The judges: zero at optima known by hand, more when perturbed, never content with something else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from strategies import plain_clusters

from fairopt.certificates import Certificate, certify, feasibility, leximin
from fairopt.exact import rational
from fairopt.mechanisms import GameMechanism, Mechanism, get
from fairopt.model import polytope
from fairopt.model.cluster import Cluster
from fairopt.model.criterion import Criterion

from .reference import definition_4, random_feasible

Array = NDArray[np.float64]

EXAMPLE = Cluster([[9, 18]], [[1, 4], [3, 1]])
FIGURE_1 = Cluster([[12, 4, 75], [8, 16, 0]], [[1, 1, 5], [1, 1 / 3, 5], [0.25, 1, 0], [0.5, 1, 0]])
VARIANT = FIGURE_1.with_demand("user4", [1, 0.5, 0])
DRFH_FIGURE = Cluster([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]])


def column(values: list[float]) -> Array:
    return np.array(values)[:, None]


def alpha_pf(alpha: float) -> list[list[float]]:
    """Catalogue item 34, the variant: users 1 and 2 fill server 1, 3 and 4 share server 2."""
    if alpha <= np.log(2) / np.log(1.5):
        return [[2, 0], [6, 0], [0, 96 / 7], [0, 32 / 7]]
    x3 = 32 / (1 + 2 ** (1 - (0 if np.isinf(alpha) else 1 / alpha)))
    return [[2, 0], [6, 0], [0, x3], [0, 8 - x3 / 4]]


def case(name: str, cluster: Cluster, tasks: object, **parameters: object) -> object:
    text = ",".join(str(value) for value in parameters.values())
    return pytest.param(get(name, **parameters), cluster, np.array(tasks, dtype=float), id=f"{name}({text})")


#: Optima by hand: catalogue items 2, 3, 4, 8, 9, 24, 25, 33 and 34.
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
    *(case("alphapf-vds", VARIANT, alpha_pf(alpha), alpha=alpha) for alpha in (0.5, 1.0, 2.0, 3.0, 30.0)),
]
TABLE = ("mechanism", "cluster", "tasks")


def certificate(mechanism: Mechanism, cluster: Cluster, tasks: Array, prices: Array | None = None) -> Certificate:
    return mechanism.certify(mechanism.prepare(cluster)[0], tasks, prices)[0]


def is_unconstrained(mechanism: Mechanism) -> bool:
    return mechanism.name != "bottleneck-fairness"


@pytest.mark.parametrize(TABLE, OPTIMA)
def test_zero_at_optima_by_hand(mechanism: Mechanism, cluster: Cluster, tasks: Array) -> None:
    found = certificate(mechanism, cluster, tasks)
    assert found.feasibility <= 1e-12
    assert found.optimality <= 1e-9, found


@pytest.mark.parametrize(TABLE, OPTIMA)
@pytest.mark.parametrize("size", [1e-3, 1e-2, 0.1])
def test_idle_capacity_costs(mechanism: Mechanism, cluster: Cluster, tasks: Array, size: float) -> None:
    """Everybody gets less: the certificate grows with what is left idle (to first order)."""
    worse = certificate(mechanism, cluster, tasks * (1 - size))
    assert worse.feasibility <= 1e-12
    assert size / 10 <= worse.optimality <= 1 if isinstance(mechanism, GameMechanism) else worse.optimality >= size / 10


@pytest.mark.parametrize(TABLE, OPTIMA)
def test_each_user_that_gives_up_tasks_is_noticed(mechanism: Mechanism, cluster: Cluster, tasks: Array) -> None:
    for n in range(len(tasks)):
        before = 0.0
        for size in (1e-3, 1e-2, 0.1):
            less = tasks.copy()
            less[n] *= 1 - size
            found = certificate(mechanism, cluster, less).optimality
            assert found > max(before, 1e-6), (n, size)
            before = found


@pytest.mark.parametrize(TABLE, OPTIMA)
def test_each_user_that_takes_more_is_noticed(mechanism: Mechanism, cluster: Cluster, tasks: Array) -> None:
    """Nobody has room at these optima: more is infeasible by just as much as it uses."""
    for n in range(len(tasks)):
        more = tasks.copy()
        more[n] *= 1.01
        found = certificate(mechanism, cluster, more)
        assert 1e-4 < found.feasibility <= 0.01 + 1e-12
        assert not found.passes()


def test_levels_swapped() -> None:
    for name in ("drf", "asset-fairness", "task-maxmin"):
        mechanism, pool = get(name), EXAMPLE
        # Along the CPU face x + 3 y = 9 from the optimum: one rises, the other falls.
        x = mechanism.solve(pool).user_tasks[0]
        gaps = []
        for step in (0.01, 0.1, 0.5):
            for sign in (1, -1):
                moved = np.array([[x + sign * step], [(9 - x - sign * step) / 3]])
                found = certificate(mechanism, pool, moved)
                assert found.feasibility <= 1e-12
                gaps.append(found.optimality)
        assert min(gaps) > 1e-3
        assert gaps[4] > gaps[2] > gaps[0]
        assert gaps[5] > gaps[3] > gaps[1]


def test_tasks_moved_between_servers() -> None:
    """Same user tasks: fine for a global mechanism where there is room, a deviation for a game."""
    roomy = Cluster([[4, 4], [4, 4]], [[1, 0], [0, 1]])
    apart = np.array([[4.0, 4.0], [4.0, 4.0]])
    for name in ("drfh", "tsf", "ps-dsf", "alphapf-vds"):
        assert certificate(get(name), roomy, apart).passes()
    swapped = np.array([[0.0, 2.0], [2.0, 0.0]])  # DRFH figure 1 the wrong way round: 2 each where 10 fit
    for name in ("drfh", "tsf", "ps-dsf"):
        assert certificate(get(name), DRFH_FIGURE, swapped).optimality > 0.1, name
    for alpha in (1.0, 3.0):
        assert certificate(get("alphapf-vds", alpha=alpha), DRFH_FIGURE, swapped).optimality > 0.05


# -- what is not feasible ------------------------------------------------------------------------

REASONS = [
    ([[4.0], [2.0]], "largest for 'resource1' of 'server1', overused", 10 / 9 - 1),
    ([[3.0], [np.nan]], "not finite", np.inf),
    ([[np.inf], [0.0]], "not finite", np.inf),
    ([[-0.3], [2.0]], "largest for user 'user1', with negative tasks", 0.3 / 4.5),
    ([[3.0]], "shape", np.inf),
    ([[3.0, 0.0], [2.0, 0.0]], "shape", np.inf),
]


@pytest.mark.parametrize(("tasks", "reason", "size"), REASONS)
@pytest.mark.parametrize("name", ["drf", "ceei", "ps-dsf", "alphapf-vds", "bottleneck-fairness", "per-server-drf"])
def test_infeasible_tasks_are_caught_with_the_reason(
    name: str, tasks: list[list[float]], reason: str, size: float
) -> None:
    worst, where = feasibility(EXAMPLE, np.array(tasks))
    assert worst == pytest.approx(size)
    assert reason in where
    if name == "bottleneck-fairness" and np.isinf(size):
        return  # its own judge, asked below
    found = get(name).certify(EXAMPLE, np.array(tasks))[0]
    assert not found.passes(1e-2)
    assert found.feasibility == pytest.approx(size)


@pytest.mark.parametrize(("tasks", "reason", "size"), [row for row in REASONS if np.isinf(row[2])])
def test_bottleneck_fairness_of_nonsense(tasks: list[list[float]], reason: str, size: float) -> None:
    found = get("bottleneck-fairness").certify(EXAMPLE, np.array(tasks))[0]
    assert not found.passes(1e-2)
    assert reason in found.worst


def test_ineligible_and_over_limit() -> None:
    barred = EXAMPLE.replace(eligible=[[True], [False]])
    worst, where = feasibility(barred, np.array([[3.0], [1e-9]]))
    assert np.isinf(worst)
    assert "user 'user2' has tasks on 'server1', which cannot run them" in where
    limited = EXAMPLE.replace(max_tasks=[2, np.inf])
    worst, where = feasibility(limited, np.array([[2.2], [1.0]]))
    assert worst == pytest.approx(0.1)
    assert "largest for user 'user1', above its task limit" in where
    nothing = EXAMPLE.replace(max_tasks=[0, np.inf])
    assert feasibility(nothing, np.array([[1e-6], [1.0]]))[0] > 1
    assert feasibility(nothing, np.array([[0.0], [1.0]])) == (0.0, "feasible")
    lacking = Cluster([[9, 0]], [[1, 4], [3, 0]])
    assert np.isinf(feasibility(lacking, np.array([[1.0], [0.0]]))[0])


def test_a_runnable_user_left_with_nothing_never_passes() -> None:
    nothing_for_2 = np.array([[4.5], [0.0]])
    for name in ("drf", "ceei", "alpha-fair", "tsf", "ps-dsf", "alphapf-vds", "fds", "per-server-drf"):
        found = get(name).certify(EXAMPLE, nothing_for_2)[0]
        assert found.optimality == np.inf, name
        assert "user2" in found.worst, name


def test_residual_is_the_worse_and_nan_never_passes() -> None:
    assert Certificate(1e-9, 2e-9, "backward error", "").residual == 2e-9
    assert Certificate(3e-9, 2e-9, "backward error", "").residual == 3e-9
    for bad in (Certificate(np.nan, 0.0, "", ""), Certificate(0.0, np.nan, "", "")):
        assert bad.residual == np.inf
        assert not bad.passes(1e9)
    assert Certificate(0.0, 1e-6, "", "").passes(1e-6)
    assert "backward error=2.0e-09" in repr(Certificate(1e-9, 2e-9, "backward error", "x"))


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


@pytest.mark.parametrize("mechanism", JUDGED, ids=str)
def test_random_feasible_allocations_do_not_pass(mechanism: Mechanism) -> None:
    """Unless they are right: what passes has the tasks of the solution where that is unique."""

    @settings(max_examples=20)
    @given(plain_clusters(), st.integers(0, 2**32 - 1))
    def law(cluster: Cluster, seed: int) -> None:
        assume(cluster.shape[0] > 1)
        seen = mechanism.prepare(cluster)[0]
        tasks = random_feasible(seen, np.random.default_rng(seed))
        best = mechanism.solve(cluster)
        off = np.abs(tasks.sum(axis=1) / best.user_tasks - 1).max()
        assume(off > 0.01)
        found = mechanism.certify(seen, tasks)[0]
        if isinstance(mechanism, GameMechanism) and found.passes():
            # Several equilibria are possible; then the definition must agree.
            assert definition_4(seen, tasks, 1e-5) or np.isfinite(getattr(mechanism, "alpha", np.inf))
            return
        assert not found.passes(), (found, off)

    law()


def test_answers_of_other_mechanisms_do_not_pass() -> None:
    """Optimal for something else, so nothing is idle; only the criterion tells them apart."""
    told_apart: set[tuple[str, str]] = set()
    servers = [m for m in JUDGED if not isinstance(m, GameMechanism)]

    @settings(max_examples=12)
    @given(plain_clusters(max_users=4, max_servers=2))
    def law(cluster: Cluster) -> None:
        answers = [(mechanism, mechanism.solve(cluster)) for mechanism in JUDGED]
        for mechanism, best in answers:
            for other, answer in answers:
                off = np.abs(answer.user_tasks / best.user_tasks - 1).max()
                if mechanism in servers and off > 0.01 and answer.tasks.shape == best.tasks.shape:
                    found = mechanism.certify(best.cluster, answer.tasks, answer.log_prices)[0]
                    assert not found.passes(), (str(mechanism), str(other), found, off)
                    told_apart.add((str(mechanism), str(other)))

    law()
    assert len(told_apart) > 50


# -- prices --------------------------------------------------------------------------------------

PRICED = [
    *(get("alpha-fair", alpha=alpha) for alpha in (0.0, 0.5, 1.0, 2.0, 20.0)),
    *(get("alphapf-vds", alpha=alpha) for alpha in (0.0, 0.5, 1.0, 3.0)),
    get("fds", beta=0.5, lam=2.0),
    get("fds", beta=3.0, lam=-2.0),
    get("drfh"),
    get("ps-dsf"),
]


@pytest.mark.parametrize("mechanism", PRICED, ids=str)
def test_wrong_prices_cannot_make_a_bad_allocation_pass(mechanism: Mechanism) -> None:
    prices = st.sampled_from([0.0, 1e-12, 1e-3, 1.0, 7.0, 1e6, -1.0])

    @settings(max_examples=20)
    @given(plain_clusters(max_users=3, max_servers=2, max_resources=2), st.lists(prices, min_size=4, max_size=4))
    def law(cluster: Cluster, given_prices: list[float]) -> None:
        seen = mechanism.prepare(cluster)[0]
        best = mechanism.solve(cluster)
        with np.errstate(divide="ignore", invalid="ignore"):  # no number is no price
            lam = np.log(np.array(given_prices)[: seen.capacity.size].reshape(seen.capacity.shape))
        richest = np.arange(len(best.tasks)) == best.dominant_shares.argmax()
        for bad in (0.97 * best.tasks, best.tasks * np.where(richest, 0.9, 1.0)[:, None]):
            for hint in (lam, best.log_prices):
                found = mechanism.certify(seen, bad, hint)[0]
                assert not found.passes(1e-4), (found, hint)

    law()


@pytest.mark.parametrize("mechanism", [m for m in PRICED if m.solve(EXAMPLE).prices is not None], ids=str)
def test_good_prices_sharpen(mechanism: Mechanism) -> None:
    """The prices that come with an answer prove it; random ones prove less."""

    @settings(max_examples=12)
    @given(plain_clusters(max_users=4, max_servers=2), st.integers(0, 2**32 - 1))
    def law(cluster: Cluster, seed: int) -> None:
        best = mechanism.solve(cluster)
        assert best.prices is not None
        assert (best.prices >= 0).all()
        good = best.certify().optimality
        assert good <= mechanism.default_tol
        assert best.log_prices is not None
        noise = np.random.default_rng(seed).uniform(0.3, 3, best.prices.shape)
        random = mechanism.certify(best.cluster, best.tasks, best.log_prices + np.log(noise))[0].optimality
        assert random >= -1e-15
        # The judge's own prices are a bound as well, perhaps a weaker one.
        own = mechanism.certify(best.cluster, best.tasks)[0].optimality
        assert own >= -1e-15

    law()


def test_random_prices_prove_less_than_the_right_ones() -> None:
    tasks = column([45 / 11, 18 / 11])
    ceei = get("ceei")
    right = ceei.solve(EXAMPLE).prices
    # Both resources are used up; KKT: lambda_1 + 4 lambda_2 = 1/x = 11/45, 3 lambda_1 + lambda_2 = 1/y = 11/18.
    by_hand = np.linalg.solve([[1, 4], [3, 1]], [11 / 45, 11 / 18])
    np.testing.assert_allclose(right[0], by_hand, rtol=1e-5, atol=1e-8)
    assert ceei.certify(EXAMPLE, tasks, np.log(by_hand)[None])[0].optimality < 1e-12
    for wrong in ([0.0, -np.inf], [-np.inf, 0.0], [0.0, 0.0]):
        assert ceei.certify(EXAMPLE, tasks, np.array([wrong]))[0].optimality > 1e-3


# -- the gap bounds what is missing --------------------------------------------------------------


def welfare(criterion: Criterion, user_tasks: Array) -> float:
    """`sum phi f_alpha(u x / phi)` straight from its definition."""
    t = criterion.share * user_tasks / criterion.weight
    if criterion.alpha == 1:
        return float(criterion.weight @ np.log(t))
    return float(criterion.weight @ t ** (1 - criterion.alpha) / (1 - criterion.alpha))


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 2.0, 5.0])
def test_the_gap_bounds_the_missing_welfare(alpha: float) -> None:
    mechanism = get("alpha-fair", alpha=alpha)

    @settings(max_examples=20)
    @given(plain_clusters(), st.integers(0, 2**32 - 1))
    def law(cluster: Cluster, seed: int) -> None:
        rng = np.random.default_rng(seed)
        criterion = mechanism.criterion(cluster)
        best = mechanism.solve(cluster)
        top = welfare(criterion, best.user_tasks) if (best.user_tasks > 0).all() or alpha < 1 else np.nan
        for tasks in (random_feasible(cluster, rng), 0.95 * best.tasks + 0.05 * random_feasible(cluster, rng, False)):
            x = tasks.sum(axis=1)
            marginal = cluster.weight**alpha * criterion.share ** (1 - alpha) * x**-alpha
            for hint in (None, best.log_prices):
                gap = certify(cluster, tasks, criterion, hint)[0].gap
                assert gap is not None
                missing = (top - welfare(criterion, x)) / float(marginal @ x)
                assert missing <= gap + 1e-7
                for _ in range(3):
                    other = random_feasible(cluster, rng)
                    assert (welfare(criterion, other.sum(axis=1)) - welfare(criterion, x)) / float(
                        marginal @ x
                    ) <= gap + 1e-9
        # And with the right prices it is not much more than what is missing.
        near = certify(cluster, 0.99 * best.tasks, criterion, best.log_prices)[0].gap
        assert near is not None
        assert near <= 0.05

    law()


def test_the_gap_is_sharp_at_a_known_distance() -> None:
    """One user, one resource, alpha = 0: half the capacity idle is a gap of 1 (as much again could be had)."""
    cluster = Cluster([[8]], [[2]])
    prices = np.log([[0.125]])  # the right ones: a task has a share of 1/4, and at 4 tasks log x rises by 1/4
    gap = get("utilitarian").certify(cluster, np.array([[2.0]]), prices)[0].gap
    assert gap == pytest.approx(1.0)
    logarithmic = get("ceei").certify(cluster, np.array([[2.0]]), prices)[0].gap
    assert logarithmic >= np.log(2) - 1e-12
    assert get("drf").certify(cluster, np.array([[2.0]]))[0].optimality == pytest.approx(1.0)


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


def test_units_do_not_matter_to_a_judge() -> None:
    @settings(max_examples=20)
    @given(plain_clusters(), st.integers(0, 2**32 - 1), st.sampled_from([1e-4, 0.3, 1e4]))
    def law(cluster: Cluster, seed: int, scale: float) -> None:
        rng = np.random.default_rng(seed)
        tasks = random_feasible(cluster, rng)
        other = cluster.replace(
            capacity=cluster.capacity * scale, demand=cluster.demand * scale, weight=cluster.weight * 3
        )
        for mechanism in (get("drfh"), get("ps-dsf"), get("alphapf-vds", alpha=2.0), get("ceei", scope="servers")):
            here, there = (mechanism.certify(c, tasks)[0].optimality for c in (cluster, other))
            assert here == pytest.approx(there, rel=1e-3, abs=1e-7)

    law()


def test_large_clusters_are_judged_by_hints_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What prices prove is an upper bound; a linear program, where it is too large, is not asked for a better one."""
    cluster = Cluster([[4, 2], [1, 6]], [[1, 1], [1, 2], [3, 1]])
    solved = get("drfh").solve(cluster)
    rough = np.asarray(solved.log_prices) + np.log([[1.0, 1.3], [1.1, 1.0]])
    exactly = certify(cluster, solved.tasks, solved.criterion, rough)[0].residual
    monkeypatch.setattr(polytope, "LARGE", 3)
    monkeypatch.setattr(rational, "WORK", 0)
    monkeypatch.setattr(leximin._linear, "maximise", None)  # calling it would be an error
    roughly = certify(cluster, solved.tasks, solved.criterion, rough)[0].residual
    assert exactly < 1e-6 < roughly < np.inf
