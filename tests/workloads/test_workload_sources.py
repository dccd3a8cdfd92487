"""Workloads by name: traces in miniature, generators, files of one's own."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fairopt.errors import DataError
from fairopt.scheduling import simulate
from fairopt.scheduling.workload import SECOND, Workload
from fairopt.workloads import known_workloads, load_workload, open_workload
from fairopt.workloads._draw import Lognormal, fitted, pf_jobs
from fairopt.workloads.jobs.google_sample import lifetimes
from fairopt.workloads.sources import WORKLOADS

from .conftest import PODS

SMALL = {
    "google-day": "tasks=500&servers=20",
    "swim-like": "jobs=50&servers=5",
    "alibaba-days": "tasks=200&servers=10",
    "drf-policies": "jobs=2",
}
#: In which nothing is drawn.
FIXED = {"mqdrf-figure2"}


def numbers(w: Workload) -> dict[str, object]:
    return {name: value.tolist() for name, value in vars(w).items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize("name", sorted(name for name in WORKLOADS.entries if not WORKLOADS.reads(name)))
def test_a_seed_gives_the_same_jobs(name: str) -> None:
    small = f"{SMALL[name]}&" if name in SMALL else ""
    one, again = (open_workload(f"{name}?{small}seed=4") for _ in range(2))
    assert numbers(one) == numbers(again)
    assert name in FIXED or numbers(one) != numbers(open_workload(f"{name}?{small}seed=5"))
    assert name in known_workloads()
    assert one.fits.mean() > 0.9


@pytest.mark.parametrize("trace", sorted(name for name, entry in WORKLOADS.entries.items() if entry.stand_in))
def test_a_generator_stands_in_for_a_trace_that_is_not_there(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIROPT_TRACES", raising=False)
    assert "in place of the trace" in open_workload(trace).source


def test_a_day_like_google_s() -> None:
    w = open_workload("google-day?tasks=20000&servers=50&users=40&hours=12&seed=2")
    assert (w.tasks, len(w.servers), w.span < 12 * 3600, len(w.users) <= 40) == (20_000, 50, True, True)
    short, long = (w.report[f"part of jobs {what}"] for what in ("up to five minutes", "longer than a day"))
    assert short == pytest.approx(0.38, abs=0.08)
    assert long == pytest.approx(0.16, abs=0.08)
    top = np.bincount(w.user, np.diff(w.first)).max() / w.tasks
    assert top > 3 / 40  # a few users have most tasks


@pytest.mark.parametrize("load", [0.3, 0.9, 2.0])
def test_a_load_that_is_asked_for(load: float) -> None:
    w = open_workload(f"google-day?tasks=5000&servers=10&load={load}&seed=2")
    assert w.work(24 * 3600 - float(w.arrival.min()) / SECOND).max() / (24 * 3600) == pytest.approx(load, rel=0.01)


def test_durations_that_are_cut_or_a_day() -> None:
    drawn, seen, day = (
        open_workload(f"google-day?tasks=3000&servers=10&hours=2&seed=2&durations={how}")
        for how in ("fitted", "seen", "day")
    )
    left = 2 * 3600 * SECOND - drawn.arrival[drawn.group_of_task]
    long = drawn.duration > left
    assert 0.1 < long.mean() < 0.9
    for other, instead in ((seen, left), (day, 86_400 * SECOND)):
        np.testing.assert_allclose(other.duration, np.where(long, instead, drawn.duration), atol=0.01 * SECOND)


def test_a_load_that_cannot_be() -> None:
    with pytest.raises(DataError, match=r"a load of at most .* draw more tasks or fewer servers"):
        open_workload("google-day?tasks=10&servers=1000&load=5")


def test_durations_that_were_cut_off_are_fitted() -> None:
    rng, truth = np.random.default_rng(0), Lognormal(500.0, 2.0)
    whole = truth.draw(rng, np.zeros(5000))
    cut = rng.uniform(10, 2000, len(whole))
    found = fitted(np.minimum(whole, cut), whole <= cut)
    assert found.median == pytest.approx(500, rel=0.1)
    assert found.sd == pytest.approx(2, rel=0.05)


def test_what_is_drawn_lasts_longer_than_what_was_seen() -> None:
    rng, model = np.random.default_rng(0), Lognormal(100.0, 1.0)
    seen = np.repeat([0.0, 1.0, 1e3, 1e9], 2000)
    drawn = model.draw(rng, seen)
    assert (drawn >= seen).all()
    alone = model.draw(rng, np.zeros(200_000))
    assert np.median(drawn[seen == 1e3]) == pytest.approx(np.median(alone[alone > 1e3]), rel=0.05)


def test_the_quantiles_of_pf() -> None:
    drawn = pf_jobs().draw(np.random.default_rng(0), np.zeros(100_000))
    assert (drawn <= 300).mean() == pytest.approx(0.38, abs=0.01)
    assert (drawn > 86_400).mean() == pytest.approx(0.16, abs=0.01)


def test_lifetimes_of_google_s_tasks(google) -> None:
    rows = lifetimes(google()).set_index(["job", "task"])
    assert len(rows) == 7
    # Evicted at 600.03 s, submitted again, not seen to start again: it ran 0.03 s in the trace, and had before.
    assert rows.loc[(10, 1), ["arrival", "before", "seen", "ended"]].tolist() == [0.0, True, pytest.approx(0.03), True]
    assert rows.loc[(14, 0), ["arrival", "before", "seen", "ended"]].tolist() == [200.0, False, 0.0, False]


def test_google_s_tasks_as_a_workload(google) -> None:
    tasks = [
        "0,,1,0,7,0,alice,3,9,0.1,0.1,0,0", "0,,1,0,7,1,alice,3,9,0.1,0.1,0,0",  # there before, never seen to end
        "600000000,,2,0,,0,bob,3,9,0.2,0.1,0,0", "601000000,,2,0,7,1,bob,3,9,0.2,0.1,0,0",
        "631000000,,2,0,7,4,bob,3,9,0.2,0.1,0,0",  # 30 s
        "640000000,,2,1,,0,bob,3,9,0.2,0.1,0,0", "650000000,,2,1,7,1,bob,3,9,0.2,0.1,0,0",  # goes on
        "700000000,,3,0,,0,carol,3,9,0.2,,0,0",  # no memory request
        "1600000000,,4,0,,0,dave,3,9,0.2,0.2,0,0",  # the end of the trace; never starts
    ]  # fmt: skip
    folder = google(tasks=tasks)

    def lasts(how: str) -> list[tuple[str, float]]:
        w = open_workload(f"google:{folder}?durations={how}&seed=1")
        assert w.report["tasks without requests, left out"] == 1
        return list(zip([w.users[n] for n in w.user[w.group_of_task]], w.duration / SECOND, strict=True))

    assert lasts("seen")[:3] == [("alice", 1000), ("bob", 30), ("bob", 950)]
    assert [seconds for _, seconds in lasts("day")] == [86_400, 30, 86_400, 86_400]
    assert lasts("fitted")[0][1] >= 1000
    assert lasts("fitted")[1] == ("bob", 30)
    # What is fitted is fitted to everybody's tasks.
    assert len(open_workload(f"google:{folder}?users=1&durations=day").users) == 1


def test_alibaba_s_pods(alibaba) -> None:
    w = open_workload(f"alibaba:{alibaba()}")
    assert w.report["pods left out, models that no node has"] == 1
    pods = [w.jobs[j] for j in w.job]  # of one task each
    assert dict(zip(pods, w.eligible[w.placement].tolist(), strict=True)) == {
        "p0": [False, True, True],
        "p1": [False, True, True],
        "p2": [True, True, True],
        "p4": [False, False, True],
    }
    assert dict(zip(pods, w.duration / SECOND, strict=True)) == {"p0": 100, "p1": 50, "p2": 140, "p4": 139}
    np.testing.assert_allclose(w.demand[pods.index("p0")] * w.unit, [4, 2, 0.5])
    gone = [line.replace("T4,LS", "T4|V100,LS") for line in PODS]  # one of the models no node has
    later = open_workload(f"alibaba:{alibaba(pods=gone)}?after=55")
    assert (len(later.jobs), later.arrival.tolist()) == (2, [5 * SECOND, 5 * SECOND])


def test_jobs_of_swim(tmp_path: Path) -> None:
    lines = ["job0\t49\t49\t740773\t0\t627471", "job1\t101\t52\t600000000\t300000000\t50", "job2\t90000\t1\t1\t1\t1"]
    (tmp_path / "FB-2009_samples_24_times_1hr_0.tsv").write_text("\n".join(lines) + "\n")
    w = open_workload(f"swim:{tmp_path}?hours=1&rate=10&block=200&heavy=0.01&seed=3")
    assert w.jobs == ("job0", "job1")
    assert (w.arrival // SECOND).tolist() == [49, 101]
    np.testing.assert_allclose(w.duration / SECOND, [1.074, 21, 21, 21, *[1 + 150.000025 / 10] * 2], atol=1e-3)
    with pytest.raises(DataError, match=r"has no other\.tsv; it has FB-2009"):
        open_workload(f"swim:{tmp_path}?trace=other")


SWF = """\
; MaxNodes: 4
; MaxProcs: 8
  1 0 5 100 2 -1 2048 3 120 4096 1 7 1 1 1 1 -1 -1
2 10 5 50 2 -1 1024 -1 120 -1 1 8 1 1 1 1 -1 -1
2 10 5 20 2 -1 1024 -1 120 -1 2 8 1 1 1 1 -1 -1
3 20 5 -1 2 -1 -1 1 120 -1 0 8 1 1 1 1 -1 -1
"""


def test_the_standard_workload_format(tmp_path: Path) -> None:
    path = tmp_path / "jobs.swf"
    path.write_text(SWF)
    w = open_workload(path)
    assert (w.users, w.jobs, w.tasks, len(w.servers)) == (("user7", "user8"), ("job1", "job2"), 5, 4)
    assert (w.duration / SECOND).tolist() == [100] * 3 + [50] * 2
    np.testing.assert_allclose(w.capacity * w.unit, [[2, 8192]] * 4)
    np.testing.assert_allclose(w.demand * w.unit, [[1, 4096], [1, 1024]])
    assert list(w.report.values()) == [2, 1, 1]  # one did not run, and one line is about a part of another
    for header, sizes in {
        "MaxNodes: 3\n; MaxProcs: 8": [2, 3, 3],
        "MaxNodes: 2": [1, 2],
        "MaxProcs: 2": [1, 1],
    }.items():
        path.write_text(SWF.replace("MaxNodes: 4\n; MaxProcs: 8", header))
        assert (open_workload(path).capacity[:, 0] * open_workload(path).unit[0]).tolist() == sizes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 3\n", r"jobs.swf:1: there are 3 numbers; a job has 18"),
        ("; a comment\n1 x" + " 1" * 16 + "\n", r"jobs.swf:2: .* is not 18 numbers"),
        ("1 -5 0 10 1" + " 1" * 13 + "\n", "jobs.swf:1: submitted at -5"),
        ("; a comment\n1 1 0 10 1 1 1 .5" + " 1" * 10 + "\n", "jobs.swf:2: row 0 of tasks .* has tasks 0.5"),
        ("; MaxProcs: 99999999999\n1 5 0 10 1" + " 1" * 13 + "\n", "99999999999 nodes; at most 1000000"),
        ("; nothing\n", "no job that ran"),
        (None, r"cannot read .*jobs.swf"),
    ],
)
def test_damaged_swf_files(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "jobs.swf").write_text(text)
    with pytest.raises(DataError, match=message):
        open_workload(tmp_path / "jobs.swf")
    (tmp_path / "jobs.swf.gz").write_bytes(b"no gzip")
    with pytest.raises(DataError, match="cannot be unpacked"):
        open_workload(tmp_path / "jobs.swf.gz")


def test_what_is_wrong_in_a_folder_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a folder"):
        load_workload(tmp_path / "none")
    tasks, servers = tmp_path / "tasks.csv", tmp_path / "servers.csv"
    named = re.escape(str(tasks))
    for content, message in (
        (None, r"has no tasks\.csv"),
        ("user,duration,cpu\na,1,1\nb,-1,1\n", r"has no servers\.csv"),
        ("user,duration,cpu\n\na,1,1\nb,-1,1\n", rf"{named}:4: row 1 of tasks .* has duration"),
        ("user,duration,cpu, cpu\na,1,1,1\n", r"csv:1: two columns are called 'cpu'"),
        ("user,duration,cpu\na,1,1,1\n", "more fields than the header"),
        ("user,duration,cpu\nb,1,1\n\na,1,1\na,1,9\n", rf"^{named}:5: tasks of job .* ask for 9 cpu"),
        ("\xff", "cannot be read as a table"),
    ):
        if content:
            tasks.write_text(content, encoding="latin-1")
        with pytest.raises(DataError, match=message):
            simulate(load_workload(tmp_path), "fifo")
        if content:
            servers.write_text("cpu\n4\n")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gogle", "there is no workload 'gogle'; known are"),
        ("google-day?machines=2020", "cannot be '2020'"),
    ],
)
def test_names_that_do_not_work(name: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_workload(name)
