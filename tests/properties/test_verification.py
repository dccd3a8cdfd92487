"""How violations are verified, and of which equilibrium they speak."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction as F
from pathlib import Path

import numpy as np
import pytest
from game.clusters import SEVERAL
from processes import ROOT
from scipy.optimize import linprog

import fairopt as fo
from fairopt.errors import DataError
from fairopt.properties import Case, Witness, get, verify
from fairopt.properties._search import draw
from fairopt.properties._tasks import exact_tasks
from fairopt.properties._verify import CERTIFIED, ENCLOSED, FRACTIONS, verified
from fairopt.properties.pareto_optimality import gains


def kept(name: str) -> Witness:
    return Witness.load(ROOT / "docs" / "witnesses" / f"{name}.json")


def feasible(cluster: fo.Cluster, user_tasks: np.ndarray) -> bool:
    """Can users have so many tasks together? By a linear program over splits."""
    user, server = np.nonzero(cluster.usable)
    places = (server == np.arange(len(cluster.servers))[:, None])[:, None]
    used = (places * cluster.demand[user].T).reshape(-1, len(user))
    total = user == np.arange(len(user_tasks))[:, None]
    most = cluster.capacity.ravel() * (1 + 1e-9)
    return bool(linprog(np.zeros(len(user)), used, most, total, user_tasks.astype(float)).status == 0)


def test_gains_between_bounds() -> None:
    """Where somebody could have more while nobody has less, a direction says so; and what it says is feasible."""
    rng, found, prop = np.random.default_rng(3), 0, get("pareto-optimality")
    for _ in range(60):
        cluster = draw(rng, prop)
        tasks, part = exact_tasks(fo.mechanisms.get("per-server-drf"), cluster), F(1)
        if tasks is None:  # it cannot keep limits
            tasks, part = exact_tasks(fo.DRFH(), cluster), F(9, 10)
        assert tasks is not None
        tasks = tasks * part
        case, more = Case(cluster, tasks), gains(cluster, tasks, tasks)
        if (case.user_tasks > 0)[cluster.runnable].all():
            assert (prop.find(case).violation > 0) == bool((more > 0).any())
        if (more > 0).any():
            found += 1
            assert (case.user_tasks + more <= cluster.max_tasks).all()
            assert feasible(cluster, case.user_tasks + more)
            wide = gains(cluster, tasks * F(999, 1000), tasks)  # tasks known to a thousandth only
            assert min(*more, *wide) >= 0
            assert feasible(cluster, case.user_tasks + wide)
    assert found >= 5


@pytest.mark.parametrize("alpha", [4.0, 10.0])
def test_what_is_proved_at_finite_alpha_is_what_a_check_finds(alpha: float) -> None:
    """Max-min of `x'_n / x_n`, of bounds or of doubles; the third user has a server of its own, and cannot gain."""
    cluster = fo.Cluster([[2, 2, 0], [1, 2, 0], [0, 0, 5]], [[3, 2, 0], [1, 4, 0], [0, 0, 1]])
    found = verify(fo.AlphaPFVDS(alpha), "pareto-optimality", cluster)
    checked = fo.properties.check("pareto-optimality", fo.AlphaPFVDS(alpha).solve(cluster, 1e-9))
    assert found.route == ENCLOSED
    assert float(found.violation[0]) == pytest.approx(checked.violation, abs=1e-6)


def test_every_equilibrium_is_asked() -> None:
    fast = fo.AlphaPFVDS(3.0, select="fast")
    one = verify(fast, "pareto-optimality", SEVERAL)
    assert one.route == ENCLOSED
    assert "in 1 of 3 pairs of equilibria it is not there (3, all that there are)" in one.selection
    worse = verify(fast, "undominated-equilibrium", SEVERAL)
    assert worse.violation[0] == pytest.approx(1 - 0.4332609 / 0.4693006, rel=1e-6)
    with pytest.raises(DataError, match="not violated"):  # on the curve comes the best first
        verified(fo.AlphaPFVDS(3.0, "curve"), "undominated-equilibrium", (SEVERAL, None))


EXACT, GAME = "drf--population-monotonicity", "alphapf-vds--pareto-optimality"


DAMAGED = [
    ("fairopt_witness", 2, "fairopt_witness is not 1"),
    ("violation", ["1/2"], "two numbers"),
    ("violation", ["0", "1"], "low <= high"),
    ("violation", ["1/0", "1"], "fractions"),
    ("violation", [0.1, float("inf")], "must be a number"),
    ("before", ["1"], "a number for every user"),
    ("users", "user1", "list of names"),
    ("mechanism", 3, "must be a text"),
    ("cluster", {}, "servers"),
    ("changed", None, "empty where nothing is changed"),
    ("extra", 1, "unknown"),
    ("route", "x" * 2000, "must be a text of at most 1000"),
    ("violation", ["1/100", "1/90"], "as stated in the witness"),
    ("violation", ["1/5", "1/3"], "as stated in the witness"),
    ("text", "nobody loses", "the finding is that user1 has"),
    ("before", [1, 2, 3], "a user has 4/3 tasks before"),
    ("mechanism", "cmmf", "one resource"),
    ("mechanism", "nothing", "no mechanism"),
    ("property", "envy-freeness", "does not apply here"),
    ("users", ["user2"], "not a change"),
    ("route", CERTIFIED, "it is verified by exact fractions"),
]


@pytest.mark.parametrize(
    ("name", "entry", "value", "message"),
    [
        *((EXACT, *damage) for damage in DAMAGED),
        (GAME, "route", FRACTIONS, "not by exact fractions as stated in the witness"),
        (GAME, "violation", [0.2, 0.3], "as stated in the witness"),
        ("utilitarian--envy-freeness", "selection", "of every equilibrium (1)", "the answers found now"),
        (GAME, "selection", "", "is of the only answer"),
        ("tsf--sharing-incentive", "mechanism", "drf", "give the pool"),
    ],
)
def test_files_that_are_damaged_or_say_what_is_not_so_are_refused(
    name: str, entry: str, value: object, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "w.json"
    kept(name).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {entry: value}))
    with pytest.raises(DataError, match=message):
        Witness.load(path).replay()


@pytest.mark.parametrize("alpha", [1.0, 2.0, 8.0])
def test_proof_c(alpha: float) -> None:
    """One server, alpha >= 1: a lie leads to at most delta^(-1/alpha) times the tasks, delta the least true demand."""
    rng, gained = np.random.default_rng(5), False
    prop, rule = get("strategy-proofness"), fo.AlphaPFVDS(alpha)
    for _ in range(15):
        users, resources = int(rng.integers(2, 5)), int(rng.integers(2, 4))
        cluster = fo.Cluster(rng.integers(2, 9, (1, resources)), rng.integers(1, 9, (users, resources)))
        least = cluster.normalised_demand[:, 0].min(axis=1)
        before = rule.solve(cluster, 1e-9).tasks
        for lie in itertools.islice(prop.deviations(cluster, rng), 4):
            has, due = prop.dues(Case(cluster, before, lie, rule.solve(lie.cluster, 1e-9).tasks))
            assert (due <= has * least ** (-1 / alpha) * (1 + 1e-6)).all()
            gained |= bool((due > has * (1 + 1e-6)).any())
    assert gained
