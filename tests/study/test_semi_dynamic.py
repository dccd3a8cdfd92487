"""PF section 6, semi-dynamic: rows by workload and mechanism, gains on the same workload, nothing computed twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairopt.errors import DataError
from fairopt.scheduling.fluid import fluid
from fairopt.scheduling.workload import Workload
from fairopt.study import semi_dynamic
from fairopt.study.semi_dynamic import SemiDynamic, pf_section6

#: Catalogue item 38: DRFH (2/3, 2/3) dominates PS-DSF (2/3, 1/2).
SERVERS = pd.DataFrame({"cpu": [2.0, 1.0], "memory": [2.0, 2.0]})


def workload(seed: int, **more: Any) -> Workload:
    tasks = pd.DataFrame({"user": ["a", "b"], "duration": [600.0 * seed, 900.0], "cpu": [3.0, 1.0],
                          "memory": [2.0, 4.0]} | more)  # fmt: skip
    return Workload.from_frames(tasks, SERVERS, source=f"seed {seed}")


@pytest.fixture(scope="module")
def found() -> SemiDynamic:
    return pf_section6([workload(1), workload(2)], ["ps-dsf", "drfh"], until=1200)


def test_cells_have_what_was_used_and_done(found: SemiDynamic) -> None:
    cells = found.cells.set_index(["source", "mechanism"])
    assert list(cells.index) == [(s, m) for s in ("seed 1", "seed 2") for m in ("PS-DSF", "DRFH")]
    # Seed 2 under PS-DSF: x = (2/3, 1/2) until the end, 1200 s: neither is done.
    row = cells.loc[("seed 2", "PS-DSF")]
    assert row["use of cpu"] == pytest.approx((2 / 3 * 3 + 1 / 2) / 3, rel=1e-5)
    assert row["use of memory"] == pytest.approx((2 / 3 * 2 + 2) / 4, rel=1e-5)
    assert row["utilization"] == pytest.approx((row["use of cpu"] + row["use of memory"]) / 2)
    assert (row["done"], row["quick"]) == (0, 0)
    assert row["work"] == pytest.approx((800 + 600) / 2100, rel=1e-5)
    assert np.isinf(row["median_response"])
    assert (cells["flagged"] == 0).all()


def test_gains_are_on_the_same_workload(found: SemiDynamic) -> None:
    use = found.cells.pivot_table(index="source", columns="mechanism", values="utilization")
    gains = 100 * (use["PS-DSF"] / use["DRFH"] - 1)
    table = found.gains("PS-DSF").set_index("over").loc["DRFH"]
    assert table["n"] == 2
    assert table["mean"] == pytest.approx(gains.mean())
    # Student's t for two draws: 12.706 s / sqrt(2).
    assert table["half"] == pytest.approx(12.7062 * gains.std() / np.sqrt(2), rel=1e-4)
    with pytest.raises(DataError, match="there is no 'TSF'"):
        found.gains("TSF")


def test_jobs_are_compared_one_by_one(found: SemiDynamic) -> None:
    jobs = found.jobs.set_index(["source", "mechanism", "job"])["response"]
    assert jobs["seed 1", "PS-DSF", "job1"] == pytest.approx(900, rel=1e-5)
    assert jobs["seed 1", "DRFH", "job1"] == pytest.approx(900, rel=1e-5)
    table = found.speedups("DRFH").set_index("over").loc["PS-DSF"]
    # Of four jobs both have seed 1's first done, equally soon, and b is sooner with DRFH, or is done with it alone.
    assert table["later"] == 0
    assert table["sooner"] > 0
    assert found.means(["done"])["mechanism"].tolist() == ["PS-DSF", "DRFH"]


def test_use_over_time_is_that_of_the_timeline(found: SemiDynamic) -> None:
    schedule = fluid(workload(1), "drfh", until=1200)
    rows = found.use[(found.use["source"] == "seed 1") & (found.use["mechanism"] == "DRFH")]
    assert len(rows) == 2 * 4
    mean = rows.groupby("resource", sort=False)["used"].mean()
    np.testing.assert_allclose(mean * schedule.end / 1200, schedule.utilization * schedule.end / 1200)


def test_what_is_there_is_not_computed_again(found: SemiDynamic, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(workload: Workload, mechanism: Any, **more: Any) -> Any:
        asked.append((workload.source, str(mechanism)))
        return fluid(workload, mechanism, **more)

    monkeypatch.setattr(semi_dynamic, "fluid", counted)
    more = pf_section6([workload(1), workload(3)], ["ps-dsf", "drfh"], until=1200, before=found)
    assert asked == [("seed 3", "PS-DSF"), ("seed 3", "DRFH")]
    assert len(more.cells) == 6


def test_two_of_the_same_source_are_refused() -> None:
    with pytest.raises(DataError, match="two workloads have the source 'seed 1'"):
        pf_section6([workload(1), workload(1)])


def test_the_picture_has_three_panels(found: SemiDynamic) -> None:
    assert len(found.plot().axes) == 3
