"""What mechanisms state is what their criteria say: as problems to take away, and as constraints nobody would judge."""

from __future__ import annotations

import re
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest
from families import EXAMPLE
from laws.registry import OTHERS, VARIANTS, identify, one_answer, resources, takes_limits
from numpy.testing import assert_allclose, assert_array_equal

from fairopt.certificates import Certificate, certify, feasibility
from fairopt.errors import DataError
from fairopt.mechanisms import GameMechanism, Mechanism, get
from fairopt.mechanisms.alphapf_vds import AlphaPFVDS
from fairopt.mechanisms.reference.named_problem import scaled_by_default
from fairopt.mechanisms.reference.program import Program, Statement, lexmaxmin, maximise
from fairopt.mechanisms.reference.server_problem import ServerProblem
from fairopt.model._arrays import Array
from fairopt.model.cluster import Cluster
from fairopt.model.criterion import Criterion, FairnessEfficiency, criterion
from fairopt.model.polytope import Polytope

SMALL = {
    "one pool": EXAMPLE,
    "two servers, weights": Cluster([[6, 10], [5, 2]], [[1, 4], [3, 1], [1, 1]], [1, 2, 0.5]),
    "placement and limits": Cluster(
        [[6, 10], [5, 2]], [[1, 4], [3, 1], [2, 1]], eligible=[[1, 1], [1, 0], [0, 1]], max_tasks=[np.inf, 1.2, np.inf]
    ),
}
ACCURATE: dict[str, dict[str, float]] = {
    "CLARABEL": {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10},
    "SCS": {"eps_abs": 1e-7, "eps_rel": 1e-7},
}
GAME_AT_OTHER_ALPHAS = [m for m in VARIANTS if isinstance(m, GameMechanism) and m.criterion(EXAMPLE).alpha != 1]


def fitting(mechanism: Mechanism, cluster: Cluster) -> Cluster:
    """The cluster, with as many resources and limits as the mechanism is for."""
    if resources(mechanism) == 1:
        cluster = cluster.select(resources=[cluster.resources[0]])
    return cluster if takes_limits(mechanism) else cluster.replace(max_tasks=None)


@pytest.mark.parametrize(
    "mechanism", [m for m in [*VARIANTS, *OTHERS] if np.isfinite(m.criterion(EXAMPLE).alpha)], ids=identify
)
@pytest.mark.parametrize("name", ["two servers, weights", "placement and limits"])
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # at these tolerances; the comparison decides
def test_problems_have_the_answers(mechanism: Mechanism, name: str) -> None:
    """Finite alpha: solved by CVXPY, printed or scaled, the problem has the mechanism's tasks and prices."""
    cluster = fitting(mechanism, SMALL[name])
    answer = mechanism.solve(cluster)
    if isinstance(mechanism, GameMechanism) and (answer.criterion.alpha != 1 or not answer.criterion.scale_free):
        remedy = "choose alpha=1" if isinstance(mechanism, AlphaPFVDS) else "take AlphaPFVDS(1)"
        said = re.escape(
            f"no single program: use game(cluster), which has one for every server, or {remedy}, where the game"
        )
        with pytest.raises(DataError, match=said):
            mechanism.problem(cluster)
        return
    alpha, rule = answer.criterion.alpha, answer.criterion
    forms = (
        [(True, "CLARABEL")] if scaled_by_default(rule) else [(False, "CLARABEL"), (False, "SCS"), (True, "CLARABEL")]
    )
    for scaled, solver in forms:
        problem = mechanism.problem(cluster, scaled=scaled)
        assert isinstance(problem, cp.Problem)
        assert problem.prices is None
        problem.solve(solver=solver, **ACCURATE[solver])
        tasks = np.maximum(problem.tasks.value, 0.0)
        steep = alpha >= 10  # at CVXPY's tolerances
        if one_answer(mechanism) and alpha > 0:
            rough = 5e-2 if steep else 2e-3 if solver == "SCS" else 2e-4
            assert_allclose(problem.user_tasks.value, answer.arrays.user_tasks, rtol=rough)
        with np.errstate(divide="ignore"):
            log_prices = np.log(problem.prices)
        if not mechanism.met_by_criterion:
            continue  # partial allocation states the first of its problems
        assert steep or mechanism.certify(answer.cluster, tasks, log_prices)[0].residual < 5e-3
        if steep or np.isfinite(cluster.max_tasks).any() or rule.floor.any():
            continue
        # Nobody is at a limit: the value of all capacities is that of the tasks at the margin.
        worth = np.exp(rule.log_marginal(answer.arrays.user_tasks)) * rule._like_share(answer.arrays.user_tasks)
        value = rule.weight.sum() if rule.scope == "game" else worth.sum()
        assert (problem.prices * answer.cluster.capacity).sum() == pytest.approx(value, rel=1e-3)


MAXMIN = [m for m in VARIANTS if np.isinf(m.criterion(EXAMPLE).alpha) and not isinstance(m, GameMechanism)]


# Mechanisms for one resource are asked on one: `criterion` alone does not refuse more.
@pytest.mark.parametrize("mechanism", MAXMIN, ids=identify)
def test_the_first_level_of_max_min(mechanism: Mechanism) -> None:
    cluster = fitting(mechanism, SMALL["placement and limits"])
    answer, problem = mechanism.solve(cluster), mechanism.problem(cluster)
    problem.solve(solver="CLARABEL")
    own, seen = answer.criterion, answer.cluster
    if own.scope == "per_server":
        with np.errstate(divide="ignore", invalid="ignore"):
            least = np.nanmin(answer.tasks / seen.gamma / own.weight[:, None])
    else:
        least = own.levels(answer.arrays.user_tasks).min()
    found = problem.value, problem.var_dict["level"].value, problem.levels.value.min()
    assert_allclose(found, least, rtol=1e-6)
    assert (problem.named["level"].dual_value > 1e-6).any()


@pytest.mark.parametrize("mechanism", GAME_AT_OTHER_ALPHAS, ids=identify)
def test_servers_have_nothing_better_at_an_equilibrium(mechanism: GameMechanism) -> None:
    cluster = SMALL["two servers, weights"]
    answer = mechanism.solve(cluster)
    for i, name in enumerate(cluster.servers):
        changed = answer.tasks.copy()
        changed[:, i] = 7.0  # its own column is not read
        problem = mechanism.server_problem(cluster, name, changed)
        problem.solve(solver="CLARABEL")
        assert_array_equal(np.delete(problem.tasks.value, i, axis=1), np.delete(answer.tasks, i, axis=1))
        assert mechanism.server_problem(cluster, i, changed).named.keys() == problem.named.keys()
        if np.isinf(answer.criterion.alpha):
            levels = answer.arrays.user_tasks * answer.criterion.share[:, i] / cluster.weight
            assert problem.value == pytest.approx(levels.min(), rel=1e-6)
        else:
            assert_allclose(problem.user_tasks.value, answer.arrays.user_tasks, rtol=1e-4)


@pytest.mark.parametrize("alpha", [20.0, 500.0])
@pytest.mark.parametrize("unfair", [1.0, 4.0])
def test_a_server_has_its_problem_at_large_alpha(alpha: float, unfair: float) -> None:
    """Measured in other units shares to the power `1 - alpha` leave the range of solvers, which say 'optimal'."""
    cluster, mechanism = SMALL["two servers, weights"], AlphaPFVDS(alpha)
    tasks = mechanism.solve(cluster).tasks.copy()
    tasks[0] *= unfair  # the problem is to be right far from an equilibrium too
    rule = mechanism.criterion(cluster)
    for i in range(len(cluster.servers)):
        problem = mechanism.server_problem(cluster, i, tasks)
        problem.solve(solver="CLARABEL")
        elsewhere = np.delete(tasks, i, axis=1).sum(axis=1)
        engine = ServerProblem(Polytope(cluster, rule.limits(cluster)), rule, i)
        best = engine.best(elsewhere, np.ones(len(elsewhere)))
        assert best.residual < 1e-6
        known = elsewhere + cluster.gamma[:, i] * best.fraction
        assert_allclose(problem.user_tasks.value, known, rtol=1e-4)


def test_what_is_no_server_problem() -> None:
    game, zero = get("ps-dsf"), np.zeros((2, 1))
    assert isinstance(game, GameMechanism)
    for name, message in (("x", r"no server 'x'; give one of server1, or its index"), (3, "no server 3")):
        with pytest.raises(DataError, match=message):
            game.server_problem(EXAMPLE, name, zero)
    for bad in (np.zeros((1, 2)), -np.ones((2, 1)), np.full((2, 1), np.nan)):
        with pytest.raises(DataError, match=r"tasks must be numbers >= 0 of shape \(users, servers\) = \(2, 1\)"):
            game.server_problem(EXAMPLE, 0, bad)
    lacking = Cluster([[1, 1], [0, 1]], [[1, 1]])
    with pytest.raises(DataError, match=r"no user can run a task on server 'server2'; choose another"):
        game.server_problem(lacking, 1, np.zeros((1, 2)))
    with pytest.raises(DataError, match="no user can run a task, so that there is no problem"):
        get("drfh").problem(Cluster([[1]], [[1]], max_tasks=0))


def test_a_problem_is_changed_by_name() -> None:
    problem = get("ceei").problem(EXAMPLE)
    more = problem.adding(floor=problem.user_tasks >= [2.0, 2.2])
    more.solve(solver="CLARABEL")
    assert more.user_tasks.value[1] == pytest.approx(2.2, abs=1e-6)
    assert more.named["floor"].dual_value[1] > 1e-3
    assert set(more.named) == {"capacity", "floor"}
    with pytest.raises(DataError, match="a constraint 'floor' already; choose another name"):
        more.adding(floor=problem.user_tasks >= 0)
    most = more.maximising(cp.sum(more.user_tasks))
    most.solve(solver="CLARABEL")
    assert most.value == pytest.approx(most.user_tasks.value.sum())
    assert most.value >= more.user_tasks.value.sum() - 1e-6
    # The one that they came of is as it was.
    assert set(problem.named) == {"capacity"}


def test_names_are_indices() -> None:
    cluster = Cluster([[9, 18], [4, 2]], [[1, 4], [3, 1]], users=["ann", "bob"], servers=["s1", "s2"])
    problem = get("ceei", scope="servers").problem(cluster)
    problem.solve(solver="CLARABEL")
    tasks, total = problem.tasks.value, problem.user_tasks.value
    assert problem.tasks["ann", "s2"].value == problem.tasks[0, 1].value == tasks[0, 1]
    assert_array_equal(problem.tasks[["bob", "ann"], "s1"].value, tasks[::-1, 0])
    assert_array_equal(problem.tasks[:, "s2"].value, tasks[:, 1])
    assert problem.user_tasks["bob"].value == problem.program.user_tasks["bob"].value == total[1]
    with pytest.raises(DataError, match="user_tasks has no 'eve'; known: ann, bob"):
        problem.user_tasks["eve"]
    assert str(problem).splitlines()[0] == "maximize weight @ log(user_tasks)"
    assert "x.T @ demand <= capacity" in str(problem)
    assert "phi_n \\log x_n" in problem._repr_html_()


@pytest.mark.parametrize("mechanism", MAXMIN, ids=identify)
def test_all_levels_of_max_min(mechanism: Mechanism) -> None:
    cluster = fitting(mechanism, SMALL["placement and limits"])
    answer, problem = mechanism.solve(cluster), mechanism.problem(cluster)
    problem.lexicographic()
    assert_allclose(problem.user_tasks.value, answer.arrays.user_tasks, rtol=1e-6)
    assert problem.allocation(criterion=mechanism).certificate.passes()


def test_all_levels_of_a_changed_problem() -> None:
    cluster = SMALL["two servers, weights"]
    floored = get("guaranteed-alpha-fair", alpha=np.inf).solve(cluster)
    problem = get("drfh").problem(cluster)
    changed = problem.adding(floor=problem.user_tasks >= floored.criterion.floor)
    changed.lexicographic()
    assert_allclose(changed.user_tasks.value, floored.arrays.user_tasks, rtol=1e-6)
    with pytest.raises(DataError, match="no max-min, so that it is one program"):
        get("ceei").problem(cluster).lexicographic()


@pytest.mark.parametrize(
    "mechanism", [m for m in [*VARIANTS, *OTHERS] if not isinstance(m, GameMechanism)], ids=identify
)
def test_parameters_are_compiled_once(mechanism: Mechanism) -> None:
    cluster = fitting(mechanism, SMALL["two servers, weights"])
    problem = mechanism.problem(cluster, parameters=True)
    assert {"capacity", "demand"} <= problem.param_dict.keys()
    # A weighted power mean has weights to a power.
    powers = isinstance(mechanism.criterion(mechanism.prepare(cluster)[0]), FairnessEfficiency)
    assert problem.is_dcp(dpp=True) != powers


def test_derivatives_of_a_problem_are_those_of_the_allocation() -> None:
    assert pytest.importorskip("diffcp")
    mechanism, cluster = get("ceei", scope="servers"), Cluster([[9, 18], [5, 4]], [[1, 4], [3, 1], [2, 2]], [1, 2, 1])
    problem, tasks = mechanism.problem(cluster, parameters=True), mechanism.solve(cluster).arrays.user_tasks
    problem.solve(requires_grad=True)
    known = mechanism.solve(cluster).sensitivity()
    for n, each in enumerate(cluster.users):
        problem.var_dict["x"].gradient = np.outer(np.arange(3) == n, [1.0, 1.0])
        problem.backward()
        for name, frame in (("capacity", known.capacities), ("weight", known.weights)):
            parameter = problem.param_dict[name]
            found = np.ravel(parameter.gradient * parameter.value / tasks[n])
            assert_allclose(found, frame[each], atol=1e-4)
    problem.param_dict["capacity"].value = 2 * cluster.capacity
    problem.solve(solver="CLARABEL")
    assert_allclose(problem.user_tasks.value, 2 * tasks, rtol=1e-4)


# -- constraints that a criterion does not express -----------------------------------------------


@dataclass(frozen=True)
class _Proportional(Mechanism):
    """Proportional fairness of tasks, with what the tests change about it."""

    change: str = "nothing"

    def criterion(self, cluster: Cluster) -> Criterion:
        return criterion(cluster, np.ones(len(cluster.users)), 1.0, "servers")

    def program(self, p: Program) -> Statement:
        rules = dict(p.constraints)
        if self.change == "floor":
            rules["floor"] = p.user_tasks >= 2.2
        elif self.change == "half":
            rules["capacity"] = 2 * p.x <= 1
        elif self.change == "unlimited":
            del rules["capacity"]
        elif self.change == "max-min":
            return lexmaxmin(p.dominant_share, rules)
        elif self.change == "sum":
            return maximise(cp.sum(p.dominant_share), rules)
        elif self.change == "unweighted":
            return maximise(cp.sum(cp.log(p.user_tasks)), rules)
        return maximise(p.weight @ cp.log(p.user_tasks), rules)


@dataclass(frozen=True)
class _WithFloors(_Proportional):
    """The same, and it judges its floors."""

    def certify(
        self, cluster: Cluster, tasks: Array, log_prices: Array | None = None
    ) -> tuple[Certificate, Array | None]:
        short = float(np.maximum(1 - tasks.sum(axis=1) / 2.2, 0.0).max())
        found, where = feasibility(cluster, tasks)
        return Certificate(max(found, short), 0.0, "floors", where), None


class _Game(GameMechanism):
    """A game whose servers state a floor."""

    def criterion(self, cluster: Cluster) -> Criterion:
        return self.virtual_criterion(cluster, 1.0)

    def program(self, p: Program) -> Statement:
        return maximise(p.weight @ cp.log(p.virtual_share), {**p.constraints, "floor": p.x >= 0.1})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("floor", r"states a constraint 'floor', which its criterion does not express: .* Define certify\("),
        ("half", "states a constraint 'capacity'"),
        ("sum", "states another objective .* marginal utilities are not proportional"),
        ("unweighted", "states another objective"),
        ("max-min", "states max-min in only one of"),
        ("unlimited", r"leaves out the constraint 'capacity', .* Give all of p\.constraints, or define certify"),
    ],
)
@pytest.mark.parametrize("engine", [None, "native", "declarative"])
def test_constraints_that_nobody_would_judge(change: str, message: str, engine: str | None) -> None:
    with pytest.raises(DataError, match=message):
        _Proportional(change).solve(EXAMPLE.replace(weight=[1, 2]), engine=engine)
    assert _Proportional().solve(EXAMPLE, engine=engine).certificate.passes()


def test_a_mechanism_that_judges_its_constraints_may_have_them() -> None:
    floors = _WithFloors("floor").solve(EXAMPLE)
    assert floors.stats.engine == "declarative"
    assert (floors.arrays.user_tasks >= 2.2 * (1 - 1e-6)).all()
    assert not certify(EXAMPLE, floors.tasks, floors.criterion)[0].passes()  # the criterion knows none
    for scaled in (False, True):
        assert _WithFloors("floor").problem(EXAMPLE, scaled=scaled).named.keys() == {"capacity", "floor"}


class _Later(_Game):
    """Only servers of two users state one."""

    def program(self, p: Program) -> Statement:
        found = super().program(p)
        return found if len(p.users) == 2 else Statement(found.objective, p.constraints)


#: At alpha = 1 one program has the answer before any server responds: what they state is looked at before.
TWO = Cluster([[9, 18], [5, 5]], [[1, 4], [3, 1]], eligible=[[1, 1], [0, 1]])


@pytest.mark.parametrize(
    ("mechanism", "cluster", "engine"),
    [
        *((_Game(), EXAMPLE, engine) for engine in (None, "best-response", "equilibrium", "declarative")),
        (_Later(), TWO, "declarative"),
    ],
)
def test_servers_may_not_state_more_either(mechanism: Mechanism, cluster: Cluster, engine: str | None) -> None:
    with pytest.raises(DataError, match="states a constraint 'floor'"):
        mechanism.solve(cluster, engine=engine)


class _Other(_Game):
    """A game whose servers maximise something else than its criterion says."""

    def program(self, p: Program) -> Statement:
        return maximise(cp.sum(p.virtual_share), p.constraints)


def test_what_servers_maximise_is_what_their_criterion_says() -> None:
    with pytest.raises(DataError, match="states another objective"):
        _Other().solve(SMALL["two servers, weights"])
