"""Columns: hand-made values, other computations of the same levels, laws of classes and clusters, false answers."""

import contextlib
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

import fairopt as fo
from fairopt.certificates.columns import backward_error, rises
from fairopt.mechanisms.columns import _offers
from fairopt.model.columns import ColumnProgram

INF = float("inf")
PAIRED = {"a": {"k80": 1, "v100": 4}, "b": {"k80": 1, "v100": 2}, ("a", "b"): {"v100": (3, 1.5)}}
GPUS = {"k80": 1, "v100": 1}


def drawn(seed: int, decades: float = 0.0, zeros: bool = True) -> dict:
    """Columns with several owners, without rows, without time, of blocked rows and users; users without columns."""
    r = np.random.default_rng(seed)
    users, rows, columns = r.integers(2, 7), r.integers(1, 4), r.integers(4, 16)
    rate = r.uniform(0.1, 3, (users, columns)) * (r.random((users, columns)) < 0.4)
    data = {
        "capacity": r.uniform(0.5, 3, rows) * (r.random(rows) < 0.9 if zeros else 1),
        "use": r.uniform(0, 2, (rows, columns)) * (r.random((rows, columns)) < 0.6),
        "rate": rate,
        "time": (rate > 0) * r.uniform(0.5, 1.5, rate.shape) * (r.random(rate.shape) < 0.8),
        "limit": np.where(r.random(users) < 0.3, INF, r.uniform(0.2, 2, users) * (r.random(users) < 0.9)),
        "weight": 10.0 ** r.uniform(-decades, decades, users) if decades else r.uniform(0.5, 2, users),
        "share": r.uniform(0.5, 2, users),
        "count": r.integers(1, 4, users),
    }
    free = (data["use"].sum(axis=0) == 0) & ((data["time"] * np.isfinite(data["limit"])[:, None]).sum(axis=0) == 0)
    data["use"][0, free] = 1.0
    return data


def many(count: int, seed: int = 0) -> tuple[dict, dict]:
    """Throughputs of jobs and of all their pairs on two kinds of GPU."""
    r = np.random.default_rng(seed)
    rate = np.exp(r.normal(size=(count, 2))) * [1, 3]
    table = {n: dict(zip(GPUS, rate[n].tolist(), strict=True)) for n in range(count)}
    for n in range(count):
        for m in range(n + 1, count):
            both = r.uniform(0.3, 0.9, (2, 2)) * rate[[n, m]].T
            table[n, m] = dict(zip(GPUS, both.tolist(), strict=True))
    return table, {"k80": count // 3, "v100": count // 4}


@pytest.mark.parametrize(
    ("alpha", "throughputs", "levels"),
    [
        # The v100 runs b for s and the pair for t: a gets 4 - t - 3 s and b 1 + s + t / 2, with s + t = 1.
        (INF, PAIRED, {"a": 1.8, "b": 1.8}),
        (INF, {"a": {"v100": 1}, "b": {"v100": 1}, ("a", "b"): {"v100": (0.6, 0.6)}}, {"a": 0.6, "b": 0.6}),
        (1, {"a": {"v100": 1}, "b": {"v100": 3}, ("a", "b"): {"v100": (0.3, 0.9)}}, {"a": 0.5, "b": 1.5}),
        # A partner without work takes its time: nobody gains from the pair.
        (INF, {"a": {"v100": 1}, "b": {"v100": 1}, ("a", "b"): {"v100": (1, 0)}}, {"a": 0.5, "b": 0.5}),
        (INF, {"a": {"v100": 2}, "b": {"v100": 0}, "c": {}}, {"a": 2, "b": 0, "c": 0}),
    ],
)
def test_by_hand(alpha: float, throughputs: dict, levels: dict) -> None:
    found = fo.Columns.from_throughputs(throughputs, GPUS, share=1.0).solve(alpha)
    assert found.levels.to_dict() == pytest.approx(levels, rel=1e-9)
    assert found.certificate.passes(1e-9)
    assert len(found.notes) == (0 in levels.values())


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("alpha", [0.5, 1, 3, INF])
def test_welfare_is_that_of_the_stated_program(seed: int, alpha: float) -> None:
    """The optimum of the program in the papers' form, by another solver where it is linear."""
    data = drawn(seed, zeros=False)
    users = fo.Columns(**data)._running[1]  # the stated program has no optimum with users that can run nothing
    problem = fo.Columns(**{name: of if name in ("capacity", "use") else of[users] for name, of in data.items()})
    found, stated = problem.solve(alpha), problem.program(alpha)
    assert found.certificate.passes(1e-7)
    value = stated.solve(solver="CLARABEL" if alpha < INF else "HIGHS")
    stated.variables()[0].value = np.array(found.amounts)
    assert stated.objective.value == pytest.approx(value, rel=1e-6)
    assert all(np.max(each.violation(), initial=0.0) < 1e-9 for each in stated.constraints)


@pytest.mark.parametrize("decades", [0, 3])
@pytest.mark.parametrize("seed", range(10))
def test_levels_are_proved_where_data_have_zeros(seed: int, decades: float) -> None:
    found = fo.Columns(**drawn(seed, decades)).solve()
    assert found.certificate.feasibility < 1e-12


@pytest.mark.parametrize("alpha", [1, INF])
def test_classes_are_their_jobs(alpha: float) -> None:
    """Classes with counts, and jobs one by one, which are merged: one answer, of few classes."""
    table, gpus = many(3)
    table |= {(n, n): {"k80": (0.4, 0.4), "v100": (0.9, 0.9)} for n in range(3)}
    count = {0: 3, 1: 1, 2: 4}
    classes = fo.Columns.from_throughputs(table, dict.fromkeys(gpus, 3), count)
    names = [(f"job{n}", i) for n in count for i in range(count[n])]
    of = {name: int(name[0][3:]) for name in names}
    single: dict = {name: table[of[name]] for name in names}
    for i, one in enumerate(names):
        single |= {(one, two): table[of[one], of[two]] for two in names[i + 1 :]}
    jobs = fo.Columns.from_throughputs(single, dict.fromkeys(gpus, 3))
    few, every = classes.solve(alpha), jobs.solve(alpha)
    assert every.levels.to_numpy() == pytest.approx(few.levels.to_numpy()[[of[name] for name in names]], rel=1e-8)
    assert every.geometric_mean == pytest.approx(few.geometric_mean, rel=1e-8)
    assert jobs._running[3].merged().program.gain.shape[0] == 3


@pytest.mark.parametrize("mechanism", [fo.TSF(), fo.CEEI("servers"), fo.AlphaFair(3, share="alone")])
def test_a_cluster_is_the_special_case(mechanism: fo.mechanisms.Mechanism) -> None:
    r = np.random.default_rng(5)
    cluster = fo.Cluster(
        r.uniform(1, 5, (3, 2)), r.uniform(0.2, 1, (6, 2)), r.uniform(1, 3, 6), r.random((6, 3)) < 0.8,
        max_tasks=r.uniform(0.5, 3, 6), rate=r.uniform(0.3, 3, (6, 3)),
    )  # fmt: skip
    rule = mechanism.criterion(cluster)
    found = fo.Columns.from_cluster(cluster, share=rule.share).solve(rule.alpha)
    assert found.work.to_numpy() == pytest.approx(mechanism.solve(cluster).work.to_numpy(), rel=1e-6)


def test_dominant_shares_of_a_cluster_are_per_task_and_need_one_rate_per_user() -> None:
    cluster = fo.Cluster([[4, 2], [1, 3]], [[1, 1], [2, 1]], rate=[[1, 1], [3, 3]])
    found = fo.Columns.from_cluster(cluster, "dominant").solve()
    assert found.work.to_numpy() == pytest.approx(fo.DRFH().solve(cluster).work.to_numpy(), rel=1e-9)
    with pytest.raises(fo.errors.DataError, match="rate"):
        fo.Columns.from_cluster(cluster.replace(rate=[[1, 2], [3, 3]]), "dominant")


def test_all_pairs_of_jobs_by_few_columns() -> None:
    found = fo.Columns.from_throughputs(*many(40), weight={n: 1 + n % 4 for n in range(40)}).solve()
    assert found.certificate.passes(1e-8)
    assert np.count_nonzero(found.amounts) <= 82  # jobs, own times and kinds of GPU


def certified(alpha: float) -> tuple[Callable[[np.ndarray, np.ndarray], float], ColumnProgram, np.ndarray]:
    """The certificate's error of amounts, at prices times factors; the program, and its fair amounts."""
    program = fo.Columns.from_throughputs(*many(8), weight={n: 1 + n % 3 for n in range(8)})._running[3]
    best = next(reversed([*_offers(program, alpha)]))
    if alpha == INF:
        return (lambda x, by: rises(program, x, best.prices * by, best.values).max()), program, best.x
    return (lambda x, by: backward_error(program, x, alpha, best.prices[0] * by)[0]), program, best.x


@pytest.mark.parametrize("alpha", [1, 3, INF])
def test_false_answers_are_refused(alpha: float) -> None:
    """A job 1% short shows at least that, and prices that are off prove nothing."""
    error, program, x = certified(alpha)
    right = np.ones(program.limits.shape[0])
    assert error(x, right) < 1e-8
    assert error(x, np.where(np.arange(len(right)) == 1, 1.03, right)) > 1e-3
    for n in range(8):
        less = x.copy()
        less[program.gain.tocsr()[n].indices] *= 0.99
        # At finite alpha the other owner of a pair has a part of its value.
        assert error(less, right) > (0.9e-2 if alpha == INF else 0.3e-2)


@pytest.mark.parametrize(
    ("x", "values", "rise"),
    [
        ([0.5, 0.5], [1, 1], 0.0),
        ([0.3, 0.7], [1, 1], 4 / 3),  # the lower one has a level of 0.7 if both are at that
        ([0.25, 0.25], [1, 1], 2.0),
        ([0.25, 0.25], [2, 2], 2.0),  # values above costs are no proof of less
    ],
)
def test_bounds_of_rises_are_valid(x: list[float], values: list[float], rise: float) -> None:
    """Two jobs on one row: the lower one rises by `rise`, up to where levels count as equal."""
    row = sp.csc_matrix(np.ones((1, 2)))
    program = ColumnProgram(row, sp.identity(2, format="csc"), np.ones(2))
    found = rises(program, np.array(x), np.ones((1, 1)), np.array([values]))
    assert found[0] >= rise - 1e-12


@pytest.mark.parametrize("alpha", [0.01, 1, 300, INF])
def test_data_over_many_decades_are_answered_with_a_proof_or_refused(alpha: float) -> None:
    for seed in (1, 2, 3, 29):
        data, r = drawn(seed), np.random.default_rng(seed)
        for name in ("use", "rate", "weight", "share"):
            data[name] = data[name] * 10.0 ** r.uniform(-40, 40, data[name].shape)
        with contextlib.suppress(fo.errors.SolverError, fo.errors.CertificateError):  # nothing else, and no warning
            fo.Columns(**data).solve(alpha)


def test_data_are_copied_and_levels_are_those_of_an_average_gpu() -> None:
    one = sp.csc_matrix((np.array([1.0, 2.0]), (np.array([0, 0]), np.array([0, 0]))), (1, 1))
    one.has_canonical_format = False
    problem = fo.Columns([3], one, one, columns=np.array(["x"]))
    one.data[:] = 7
    assert problem.solve().levels.tolist() == pytest.approx([3])
    with pytest.raises(AttributeError, match="cannot assign"):
        problem.capacity = np.ones(1)
    assert fo.Columns.from_throughputs({"a": {"v100": 2}}, {"v100": 0.5}).solve().smallest == pytest.approx(0.5)


def test_given_amounts_are_judged_by_their_distance() -> None:
    problem = fo.Columns.from_throughputs(PAIRED, GPUS, share=1.0)
    best = problem.solve()
    assert problem.judge(best.amounts).certificate.residual < 1e-12
    half = problem.judge(0.5 * best.amounts)
    assert half.flagged
    assert half.certificate.optimality == pytest.approx(0.5)
    assert half.certificate.worst == "largest for user 'a'"
    assert "a + b" in half.to_frame().index
    assert "misses the tolerance" in repr(half)
    assert problem.judge(2 * best.amounts).certificate.feasibility == pytest.approx(1)
    assert problem.judge(-best.amounts).certificate.feasibility == pytest.approx(1)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: fo.Columns([1], [[0, 1]], [[1, 1]]), "works and uses nothing"),
        (lambda: fo.Columns([1], [[1]], [[-1]]), "rate must be 0, or finite"),
        (lambda: fo.Columns([1], [[1, 1]], [[1]]), "must have shape"),
        (lambda: fo.Columns([1], [[1]], [[1]], weight=0), "weight 0"),
        (lambda: fo.Columns([1], [[1]], [[1]]).solve(0), "above 0"),
        (lambda: fo.Columns.from_throughputs(PAIRED | {("a", "a"): {}}, GPUS), "paired with itself"),
        (lambda: fo.Columns.from_throughputs(PAIRED, GPUS, scale={"a": 2}), "different scale"),
        (lambda: fo.Columns.from_throughputs(PAIRED, {"k80": 1}), "not among the workers"),
        (lambda: fo.Columns.from_throughputs(PAIRED, GPUS, weight={"z": 1}), "no throughputs"),
        (lambda: fo.Columns.from_throughputs(PAIRED | {("a", "b"): {"v100": 1}}, GPUS), "two throughputs"),
        (lambda: fo.Columns.from_throughputs(PAIRED | {"b": {}}, GPUS), "runs nowhere alone"),
        (lambda: fo.Columns.from_throughputs(PAIRED | {("a", "B"): {"v100": 1}}, GPUS), "no pair of two jobs"),
        (lambda: fo.Columns.from_throughputs(PAIRED | {("a", "a"): {"v100": (-1, 2)}}, GPUS, {"a": 2}), "at least 0"),
        (lambda: fo.Columns.from_throughputs(PAIRED, GPUS, share={"a": 1}), "no number for 'b'"),
        (lambda: fo.Columns.from_throughputs(PAIRED, GPUS, share="dominant"), "'alone', a number, or a dict"),
        (lambda: fo.Columns.from_throughputs(PAIRED, GPUS, count=3), "count must be a dict"),
        (lambda: fo.Columns.from_throughputs({"a": 3}, GPUS), "throughputs of 'a' must be a dict"),
        (lambda: fo.Columns([1], [[1]], [[1]], count=0.5), "whole number of jobs"),
        (lambda: fo.Columns([1e-300], [[1]], [[1]]), "from 1e-50 to"),
        (lambda: fo.Columns([1], [[1]], [[1]], columns=[()]), "empty tuple"),
        (lambda: fo.Columns([1], [[1]], [[1]]).solve("1"), "of type str"),
        (lambda: fo.Columns([1], [[1]], [[1]]).solve(tol=np.nan), "tol is nan"),
    ],
)
def test_lies_are_named(make, says: str) -> None:
    with pytest.raises(fo.errors.DataError, match=says):
        make()
