"""Statements on simulations: intervals and bounds make outcomes, outcomes by assumption make verdicts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairopt import papers, simulate
from fairopt.harness.papers import _judged, statistics
from fairopt.harness.papers._claim import UNDER
from fairopt.harness.papers._judged import AGREES, DIFFERS, UNDECIDED, Assumption
from fairopt.harness.report import judging
from fairopt.harness.simulate import _demands
from fairopt.papers import Judged
from fairopt.report import StoredCells
from fairopt.scheduling import Workload
from fairopt.workloads.jobs.paper_setups import figure4_mixes

LOOP = Assumption("loop", "one after the other", {"true": "in sequence", "false": "at once"}, "false")
FACTOR = Assumption("factor", "not said", {"1": "none", "3": "threefold", "5": "fivefold"}, "1")
ONE = Judged(
    "DRF", (102,), "7.2", "more jobs", "more", "drf_policies", {"of": "each_job"}, 0.0, math.inf, (LOOP, FACTOR)
)


@pytest.mark.parametrize(
    ("mean", "half", "low", "high", "outcome"),
    [
        (1, 0.9, 0, math.inf, AGREES), (1, 1.1, 0, math.inf, UNDECIDED), (-1, 0.9, 0, math.inf, DIFFERS),
        (44, 0.4, 43.5, 44.5, AGREES), (44, 0.6, 43.5, 44.5, UNDECIDED), (45, 0.4, 43.5, 44.5, DIFFERS),
        (1, math.inf, 0, math.inf, UNDECIDED), (-1e-14, 0, 0, math.inf, AGREES),
    ],
)  # fmt: skip
def test_an_interval_agrees_within_the_bounds_and_across_one_it_decides_nothing(
    mean: float, half: float, low: float, high: float, outcome: str
) -> None:
    assert replace(ONE, low=low, high=high).outcome(mean, half) == outcome


def setups(outcomes: dict[tuple[str, str], str]) -> pd.DataFrame:
    rows = [{"loop": loop, "factor": factor, "outcome": is_} for (loop, factor), is_ in outcomes.items()]
    return pd.DataFrame(rows).assign(mean=1.0, half=0.1, n=5)


@pytest.mark.parametrize(
    ("of_factors", "decided", "verdict"),
    [
        ("yyyyyy", "", "reproduced"),
        ("yyynnn", "", "reproduced under the assumption: in sequence"),
        ("yyynnn", "true", "reproduced"),
        ("nyynyy", "", "reproduced under the assumption: threefold or fivefold"),
        ("nyynny", "", f"{UNDER} in sequence, threefold or fivefold (3 of 6 combinations agree)"),
        ("nnuynn", "true", "cannot be judged here: not decided by 5 draws"),
        ("nnnnnn", "", "not reproduced under any set-up tried (in sequence or at once; none or threefold or fivefold)"),
    ],
)  # fmt: skip
def test_the_verdict_says_under_which_assumptions(of_factors: str, decided: str, verdict: str) -> None:
    every = [(loop, factor) for loop in ("true", "false") for factor in ("1", "3", "5")]
    words = {"y": AGREES, "n": DIFFERS, "u": UNDECIDED}
    frame = setups({one: words[is_] for one, is_ in zip(every, of_factors, strict=True)})
    assert replace(ONE, assumptions=(replace(LOOP, decided=decided), FACTOR)).verdict(frame) == verdict


def test_an_option_that_follows_from_another_is_not_named() -> None:
    """A load belongs to a drawn day only, durations to the trace only."""
    rows = [("day", "1", "-", DIFFERS), ("day", "2", "-", DIFFERS), ("trace", "-", "drawn", AGREES)]
    frame = pd.DataFrame(rows, columns=["source", "load", "durations", "outcome"]).assign(mean=1.0, half=0.1, n=3)
    axes = (Assumption("source", "", {}), Assumption("load", "", {"-": ""}), Assumption("durations", "", {"-": ""}))
    assert replace(ONE, assumptions=axes).verdict(frame) == "reproduced under the assumption: source=trace"


def test_every_statement_has_shipped_intervals_and_known_words() -> None:
    claims = papers.claims()
    for one in papers.judged():
        found = _judged.setups(one)
        assert len(found), one
        assert (found["n"] >= 1).all(), one
        for axis in one.assumptions:
            assert axis.paper
            if axis.name in found:
                assert set(found[axis.name]) <= set(axis.means), axis
        [claim] = [claim for claim in claims if (claim.paper, claim.statement) == (one.paper, one.statement)]
        assert claim.agreed == one.verdict(found), one


class Stored:
    """Stored cells with these long tables."""

    def __init__(self, **tables: pd.DataFrame) -> None:
        self.tables = tables

    def long(self, name: str) -> pd.DataFrame:
        return self.tables[name].assign(repetition=0)


def jobs(**responses: list[float]) -> Stored:
    frames = [
        pd.DataFrame({"policy": name, "response": of, "tasks": 1, "user": "small 1"}).assign(job=lambda t: t.index)
        for name, of in responses.items()
    ]
    return Stored(each_job=pd.concat(frames))


def test_a_few_long_waits_decide_means_and_not_medians() -> None:
    """Of nine jobs eight take as long under both, and one waits under slots."""
    found = statistics.sooner(jobs(drf=[10.0] * 9, slots=[10.0] * 8 + [1000.0]), [], "drf", "slots", "DRF", 0)
    values = found.set_index("statistic")["value"]
    assert values["reduction of means"] == pytest.approx(100 * (1 - 90 / 1080))
    assert values["median per job"] == 0
    assert values["trimmed mean per job"] == pytest.approx(99 / 9)


def test_jobs_and_responses_against_the_best_of_several() -> None:
    found = jobs(drf=[10.0, 20.0, 30.0], few=[40.0, np.nan, np.nan], many=[10.0, 30.0, np.nan])
    best: dict[str, Any] = {"of": "each_job", "across": "policy", "better": "drf", "than": ["few", "many"]}
    done = statistics.compared(found, [], **best, value="done", how="sum", contrast="gain of numbers")
    response = statistics.compared(found, [], **best, value="response", contrast="reduction", over="min")
    assert [*done["value"], *response["value"]] == [pytest.approx(50), pytest.approx(0)]
    assert statistics.compared(found, [], **(best | {"than": "none"}), value="done").empty


def test_instants_count_if_all_resources_are_used_more() -> None:
    values = {"a": ([0.5, 0.5, 0.9], [0.2, 0.4, 0.4]), "b": ([0.4, 0.6, 0.9], [0.2, 0.3, 0.3])}
    rows = [
        {"policy": policy, "time": t + 1.0, "what": f"use_{what}", "value": value}
        for policy, both in values.items()
        for what, several in zip(("cpu", "memory"), both, strict=True)
        for t, value in enumerate(several)
    ]
    found = statistics.instants_above(Stored(timeline=pd.DataFrame(rows)), [], "a", "b", ["cpu", "memory"])
    assert found["value"].tolist() == [pytest.approx(200 / 3)]


def test_users_who_complete_all_under_one_policy_only() -> None:
    done = {"best": [4, 4, 2, 3], "slots": [4, 3, 2, 4]}
    users = [
        {"policy": name, "user": n, "tasks": 4, "tasks_done": k} for name, of in done.items() for n, k in enumerate(of)
    ]
    found: Any = Stored(each_user=pd.DataFrame(users))
    contrast = {name: name for name in ("whole alone", "below", "decrease", "at least as much", "above")}
    values = statistics.compared(found, [], of="each_user", value="part", by=["user"], across="policy", better="best",
                                 contrast=contrast).set_index("reading")["value"]  # fmt: skip
    assert values.to_dict() == dict.fromkeys(contrast, 25) | {"at least as much": 75}


def test_the_margin_of_a_number_of_slots() -> None:
    use = {"slots(n=10)": 0.3, "slots": 0.5, "slots(n=16)": 0.45, "best-fit-drfh": 0.9}
    rows = [{"policy": policy, "utilization": part, "resource": "cpu"} for policy, part in use.items()]
    found = statistics.compared(Stored(use=pd.DataFrame(rows)), [], of="use", value="utilization", how="sum",
                                across="number", better=14, contrast="more")  # fmt: skip
    assert found["value"].tolist() == [pytest.approx(5)]


def test_statements_that_come_out_together() -> None:
    rows = [("a", "x", AGREES), ("a", "y", AGREES), ("b", "x", DIFFERS), ("b", "y", AGREES), ("c", "x", DIFFERS)]
    frame = pd.DataFrame(rows, columns=["claim", "assuming", "outcome"])
    assert judging.together(frame) == (["a", "b"], ["y"])


def test_demands_that_differ_by_a_hundredth_are_not_stored_as_equal() -> None:
    """Bins as wide as a third made a third of Alibaba's tasks as heavy in CPU as in memory."""
    tasks = pd.DataFrame({"user": "a", "duration": 1.0, "tasks": [3, 1], "cpu": [0.0101, 0.05], "memory": [0.01, 0.0]})
    found = _demands(simulate(Workload.from_frames(tasks, pd.DataFrame({"cpu": [1], "memory": [1]})), "fifo"))
    assert found.to_numpy() == pytest.approx(np.array([[0.0101, 0.01, 3], [0.05, 0.0, 1]]))


@pytest.mark.parametrize("certain", [True, False])
def test_one_draw_decides_only_where_nothing_is_random(certain: bool) -> None:
    cells = pd.DataFrame({"seed": [0 if certain else 1], "source": "x?loop=true", "policy": "p", "key": "k"})
    use = pd.DataFrame({"key": "k", "resource": ["cpu"], "utilization": [0.5]})

    class Contents:
        def long(self, name: str, keys: object) -> pd.DataFrame:
            return use

    found = StoredCells(cells.assign(repetition=0), cells[:0], (), Contents())  # type: ignore[arg-type]
    frame = judging.evaluate(
        replace(ONE, statistic={"of": "use", "value": "utilization", "where": {"resource": "cpu"}}), found
    )
    assert frame[["loop", "factor", "mean", "outcome"]].to_numpy().tolist() == [
        ["true", "1", 50, AGREES if certain else UNDECIDED]
    ]


def test_mixes_of_servers_have_the_printed_totals() -> None:
    mixes = figure4_mixes()
    assert mixes[0].tolist() == [58, 19, 15, 6, 1, 1]
    assert (mixes.sum(axis=1) == 100).all()
    assert np.abs(mixes @ [0.4995, 0.2493, 0.749, 1, 0.2498, 0.1241] - 51.32).max() <= 0.005
    assert np.abs(mixes @ [0.5, 0.5, 0.5, 1, 0.25, 0.5] - 52.75).max() < 1e-9
