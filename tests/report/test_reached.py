"""Medians of games of which some never end, and their intervals."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fairopt as fo
from fairopt import harness, report
from fairopt.errors import DataError
from fairopt.report import Results, median_interval, reached, tables_of


@pytest.mark.parametrize("n", [1, 2, 5, 6, 8, 9, 20, 25, 100])
def test_the_interval_is_the_narrowest_that_covers(n: int) -> None:
    """Coverage of [x_k, x_(n+1-k)] is `1 - 2 P(B < k)`, B binomial: at least 95%, and less for the next k."""
    frame = pd.DataFrame({"of": "a", "x": np.random.default_rng(n).permutation(n) + 1.0})
    row = median_interval(frame, ["of"], "x").iloc[0]
    assert (row["median"], row["n"]) == ((n + 1) / 2, n)
    if n < 6:
        assert np.isnan([row["low"], row["high"]]).all()
        return
    k = int(row["low"])  # values are their ranks
    assert row["high"] == n + 1 - k
    assert 2 * stats.binom.cdf(k - 1, n, 0.5) <= 0.05 < 2 * stats.binom.cdf(k, n, 0.5)


def test_twenty_draws_and_those_that_never_come() -> None:
    x = [*range(1, 14), *[math.inf] * 7]
    row = median_interval(pd.DataFrame({"of": 1, "x": x}), ["of"], "x").iloc[0]
    assert row[["low", "median", "high"]].tolist() == [6, 10.5, math.inf]
    half = pd.DataFrame({"of": 1, "x": [1.0, 2.0, math.inf, math.inf]})
    assert median_interval(half, ["of"], "x")["median"].tolist() == [math.inf]


EXPERIMENT = """
title = "Games"
repetitions = 6
clusters.a = "lognormal?users=5&servers=3"
[[grid]]
mechanisms = "alphapf-vds"
alphas = [0.5, 2]
engines = "best-response"
orders = ["cyclic", "jacobi"]
dampings = 0.9
tols = 1e-3
max_rounds = 12
residuals = [0.1, 1e-2, 1e-3, 1e-5]
[[tables]]
name = "games"
rows = ["alpha", "order"]
values = ["rounds to 1e-3", "messages to 1e-3", "seconds per server to 1e-3", "linear_factor", "linear_fit"]
medians = true
[[tables]]
name = "paired"
rows = "alpha"
values = "rounds to 1e-1"
medians = true
less = { order = "cyclic" }
[[tables]]
name = "powers"
rows = "order"
values = "rounds to 1e-1"
fit = "alpha"
"""


def test_mechanisms_are_compared_on_the_same_draw_whatever_their_parameters(tmp_path: Path) -> None:
    path = tmp_path / "gains.toml"
    path.write_text('title = "x"\nrepetitions = 2\nclusters.a = "lognormal?users=4&servers=3"\n[[grid]]\n'
                    'mechanisms = ["drfh", "ps-dsf", "alphapf-vds"]\nalphas = [1, 2]\n')  # fmt: skip
    harness.sweep(path, store=tmp_path / "store", progress=False)
    found = Results(tmp_path / "store").of(path)
    frame = found.table(["mechanism", "alpha"], "utilization", less={"mechanism": "drfh"}).frame
    wide = found.cells.pivot(index=["name", "alpha"], columns="repetition", values="utilization")
    for name, alpha, mean in frame[["mechanism", "alpha", "utilization"]].to_numpy().tolist():
        assert mean == pytest.approx((wide.loc[name, alpha] - wide.loc["drfh"].iloc[0]).mean())
    assert len(frame) == 3
    with pytest.raises(DataError, match="no cells are alike but for utilization"):
        found.table("mechanism", "utilization", less={"utilization": found.cells["utilization"].iloc[0]})


def test_games_of_a_sweep(tmp_path: Path) -> None:
    """Against the curves themselves: when each residual is at or below the level for good."""
    path = tmp_path / "games.toml"
    path.write_text(EXPERIMENT)
    harness.sweep(path, store=tmp_path / "store", progress=False)
    results = Results(tmp_path / "store")
    found = results.of(path)
    table = reached(found)
    assert len(table) == 2 * 2 * 3  # a game that stops at 1e-3 says nothing of 1e-5
    assert table["n"].eq(6).all()
    assert table["there"].min() < 6  # some are late
    curves = dict(list(found.long("curve").groupby(["alpha", "order"])))
    for row in table.to_dict("records"):
        rounds = []
        for _, of in curves[row["alpha"], row["order"]].groupby("key"):
            late = of["round"][of["residual"] > row["level"]].max()
            rounds.append(min(of["round"][of["round"] > np.nan_to_num(late)], default=math.inf))
        rounds.sort()
        assert row["there"] == np.isfinite(rounds).sum()
        assert row["rounds"] == np.median(rounds)
        assert (row["rounds low"], row["rounds high"]) == (rounds[0], rounds[-1])
    means, games, *further = tables_of(str(path), results)
    assert (means.name, games.name) == ("games", "games-reached")
    assert games.frame.pop("mechanism").unique().tolist() == ["alphapf-vds"]  # alpha has a column of its own
    pd.testing.assert_frame_equal(games.frame, table.drop(columns="mechanism"), check_like=True)
    of_games, paired, powers = (one.frame for one in further)
    assert [one.name for one in further] == ["games-games", "games-paired", "games-powers"]
    at = table[np.isclose(table["level"], 1e-3)].set_index(["alpha", "order"])
    of_games = of_games.set_index(["alpha", "order"])
    np.testing.assert_array_equal(of_games["rounds to 1e-3"], at["rounds"])
    np.testing.assert_array_equal(of_games["messages to 1e-3"], at["messages"])
    np.testing.assert_allclose(of_games["seconds per server to 1e-3"], at["seconds"] / 3)
    wide = found.long("reached").pivot(index=["alpha", "repetition", "order"], columns="level", values="rounds")
    for key, of in wide.drop(columns=1e-5).dropna().groupby(["alpha", "order"]):
        rates = [stats.linregress(np.log(row.index.astype(float)), row.astype(float)) for _, row in of.iterrows()]
        factors = [np.exp(1 / rate.slope) for rate in rates if rate.slope < 0]
        assert min(factors) * (1 - 1e-9) <= of_games.loc[key, "linear_factor"] <= max(factors) * (1 + 1e-9)
        assert 0.5 < of_games.loc[key, "linear_fit"] <= 1
    each = wide[0.1].unstack("order")
    more = (each["jacobi"].fillna(math.inf) - each["cyclic"]).groupby("alpha")
    assert np.isinf(more.max()).any()
    for name, expected in (("", more.median()), (" low", more.min()), (" high", more.max())):
        np.testing.assert_allclose(paired.set_index("alpha")[f"rounds to 1e-1{name}"], expected)
    of = each["cyclic"]
    line = stats.linregress(np.log(of.index.get_level_values("alpha")), np.log(of.to_numpy(dtype=float)))
    expected = [12, 12, line.slope, stats.t.ppf(0.975, 10) * line.stderr, line.rvalue**2]
    columns = ["n", "there", "exponent of alpha", "+- exponent of alpha", "fit"]
    np.testing.assert_allclose(powers.set_index("order").loc["cyclic", columns].tolist(), expected)


def test_a_table_that_cannot_be(tmp_path: Path) -> None:
    """The line of the file is named."""
    path = tmp_path / "games.toml"
    for old, new, said in (("to 1e-1", "to 1e-9", "no column 'rounds to 1e-9'"), ('"cyclic" }', '"randm" }', "randm")):
        path.write_text(EXPERIMENT.replace(f"{old}", f"{new}"))
        results = Results(tmp_path / "store")
        harness.sweep(path, store=tmp_path / "store", progress=False) if said != "randm" else None
        with pytest.raises(DataError, match=rf"games.toml:\d+: tables.*{said}"):
            tables_of(str(path), results)


@pytest.mark.parametrize("level", [0.0, 1.0, 1.2, math.nan])
def test_a_level_that_is_none(level: float) -> None:
    frame = pd.DataFrame({"a": [1, 1, 1], "x": [1.0, 2.0, 3.0]})
    for by in (report.interval, report.median_interval):
        with pytest.raises(DataError, match="it must be between 0 and 1"):
            by(frame, ["a"], "x", level=level)


def test_churn(tmp_path: Path) -> None:
    """Users who leave, and come back without tasks, against the games by hand."""
    path = tmp_path / "games.toml"
    text = EXPERIMENT[: EXPERIMENT.index("[[tables]]")].replace('["cyclic", "jacobi"]\ndampings = 0.9', '"elastic"')
    path.write_text(text.replace("repetitions = 6", "repetitions = 1").replace("= 12", '= 50\nmeasures = "churn"'))
    harness.sweep(path, store=tmp_path / "store", progress=False)
    found = Results(tmp_path / "store").of(path).cells
    for cell, row in zip(harness.cells_of(harness.load(path)), found.to_dict("records"), strict=True):
        cluster = fo.open_source("lognormal?users=5&servers=3", rng=np.random.default_rng([1, 0])).cluster
        cold = fo.best_response(cluster, row["alpha"], tol=1e-3)
        stay = np.sort(cell.rng().permutation(5)[1:])
        left = fo.best_response(
            cluster.select(users=[cluster.users[n] for n in stay]), row["alpha"], tol=1e-3, start=cold.tasks[stay]
        )
        start = np.zeros((5, 3))
        start[stay] = left.tasks
        joined = fo.best_response(cluster, row["alpha"], tol=1e-3, start=start)
        for what, game in (("leaving", left), ("joining", joined)):
            for level in (1e-1, 1e-2, 1e-3):
                name = f"rounds to {level:.0e} after {what}".replace("e-0", "e-")
                assert row[name] == game.trace.rounds_to(level)
