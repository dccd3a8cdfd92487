from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from families import EXAMPLE

import fairopt as fo
from fairopt import harness, report
from fairopt.app.cli import main
from fairopt.errors import DataError
from fairopt.mechanisms import Mechanism
from fairopt.study.compare import NOTE

#: Six mechanisms answer for the pool here, in which user B fits more tasks than on its servers.
CLUSTER = """
resources = ["cpu", "memory"]
[[servers]]
name = "rack"
count = 3
capacity = { cpu = 9, memory = 18 }
[[servers]]
name = "big"
capacity = [32, 64]
[[users]]
name = "A"
demand = { cpu = 1, memory = 4 }
[[users]]
name = "B"
demand = { cpu = 3, memory = 1 }
weight = 2
max_tasks = 10
eligible = ["rack-1", "big"]
"""


def variants() -> list[Mechanism]:
    return [one for name in fo.mechanisms.names() for one in fo.mechanisms.get(name).variants()]


def test_compare_default_is_every_registered_mechanism() -> None:
    """One server is its own pool."""
    frame = fo.compare(fo.papers.instance("drf-4.1"), details=True)
    assert {*frame.index} == {*map(str, variants())}
    assert list(frame.columns[:2]) == ["status", "notes"]
    assert frame.loc["DRF", "notes"] == frame.loc["CMMF", "notes"] == ""
    assert set(frame["status"].str.split(":").str[0]) == {"ok", "not applicable"}
    assert not frame["pooled"].any()
    assert type(fo.mechanisms.get("AlphaPFVDS")) is fo.AlphaPFVDS  # names of classes are names


@pytest.mark.parametrize("users", [2, 3])
def test_what_is_printed_first_is_results(users: int) -> None:
    """Eight columns at most, none cut, in text and HTML, and what does not apply below the table."""
    cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1], [1, 1]][:users], users=["jain", "B", "C"][:users])
    for frame in (fo.compare(cluster), fo.alpha_path(cluster, [0.5, 2])):
        own = ["jain (tasks)", "B"] if users == 2 else []
        measures = ["min_share", "max_share", "utilization", "jain", *([] if own else ["welfare"])]
        assert list(frame.columns) == ["tasks", *own, *measures, "certified"]
        assert frame.notna().all(axis=None)
        for shown in (repr(frame), frame._repr_html_()):
            assert "..." not in shown
            assert {*frame.columns} <= {*re.findall(r"(?<=[ >])(?:jain \(tasks\)|\w+)", shown)}
        with pytest.raises(KeyError, match=r"use_resource1.*details=True"):
            frame["use_resource1"]
    frame, line = fo.compare(cluster), "not applicable here: CMMF, max-min (details=True says why)"
    assert [*frame.below] == [line]
    for shown in (frame, frame.round(6), frame.loc[["DRF"]], frame[["tasks"]]):
        assert repr(shown).splitlines()[-1] == line
        assert shown._repr_html_().endswith(f"<p>{line}</p>")
    assert len(report.comparison(frame)[0]) == len(frame)


def test_what_is_absent_is_blank() -> None:
    cluster = fo.Cluster([[9, 18, 0]], [[1, 4, 0], [3, 1, 0]], resources=["cpu", "ram", "gpu"])
    frame, found = fo.compare(cluster, ["drf", "cmmf"], details=True), fo.DRF().solve(cluster)
    assert frame["use_gpu"].isna().all()
    assert frame["tasks"].dtype == float
    assert frame["utilization"].iloc[0] == found.summary()["utilization"] == pytest.approx(1 / 2 + 14 / 36)
    for shown in (frame, frame[["status", "tasks", "use_gpu"]], frame.round(2), found, fo.compare(cluster)):
        assert not re.search(r"\bnan\b", (repr(shown) + shown._repr_html_()).lower())
    assert "gpu" not in repr(found).splitlines()[-2]


def test_it_says_where_all_wants_are_met() -> None:
    cluster = EXAMPLE.replace(max_tasks=[1, 1])
    chosen = ["drf", "cmmf", lambda cluster: [1, 0.5]]
    frame = fo.compare(cluster, chosen, details=True)[["tasks", "min_share_wanting"]]
    lines = [line.split()[1:] for line in repr(frame).splitlines()[2:]]
    assert lines == [["2.0", "all", "met"], [], ["1.5", "0.166667"]]
    assert frame.to_html().count("all met") == 1
    assert frame["min_share_wanting"].dtype == float


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (fo.DRF(), r"give a list of them, such as \['drf'\]"),
        (fo.DRF, r"give a list of them, such as \['drf'\]"),
        (3, "mechanisms are 3; give a list"),
        ([fo.DRF], r"DRF is a class; give an instance of it, DRF\(\), or its name"),
        ([3], r"3 is no mechanism; give a name, or an instance"),
        ([], "the list of mechanisms is empty; known: alpha-fair"),
        (["alphapfvsd"], "no mechanism 'alphapfvsd'; known: .*; did you mean alphapf-vds?"),
    ],
)
def test_what_was_meant_is_said(chosen: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fo.compare(fo.papers.instance("drf-4.1"), chosen)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[1, 2]], r"cluster is \[\[1, 2\]\], of type list; make one with fairopt.Cluster\(capacity, demand\)"),
        ("c.toml", r"read a file with fairopt.Cluster.load"),
        (fo.DRF().solve(fo.papers.instance("drf-4.1")), "of type Allocation; pass its .cluster"),
    ],
)
def test_what_is_no_cluster_is_said(given: Any, message: str) -> None:
    for use in (fo.DRF().solve, fo.DRF().problem, fo.alpha_path, fo.compare, lambda one: fo.best_response(one, 1)):
        with pytest.raises(DataError, match=message):
            use(given)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.toml"
    path.write_text(CLUSTER)
    return path


def test_who_answers_for_the_pool_is_marked_and_stands_last(file: Path) -> None:
    cluster = fo.Cluster.load(file)
    frame = fo.compare(cluster, details=True)
    assert fo.compare(cluster, "drf, drfh").below == (NOTE,)
    assert frame["pooled"].tolist() == [label.endswith("*") for label in frame.index] == sorted(frame["pooled"])
    assert {"DRF*", "CEEI*", "asset fairness*"} <= {*frame.index}
    for one in variants():
        if f"{one}*" in frame.index or frame.loc[str(one), "status"] == "ok":  # elsewhere nothing answered
            pooled = len(one.prepare(cluster)[0].servers) < len(cluster.servers)
            assert (f"{one}*" in frame.index) == pooled, one


def test_the_mark_is_on_the_screen_and_in_exports(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(file), "--mechanisms", "drf", "drfh"]) == 0
    out = capsys.readouterr().out
    assert list(dict.fromkeys(re.findall(r"^ *(DRF\S*)", out, re.M))) == ["DRFH", "DRF*"]  # wide tables are folded
    assert f"- {NOTE}" in " ".join(out.split())
    experiment = tmp_path / "pooled.toml"
    text = f'title = "T"\ntable = "KIND"\nclusters.one = "{file.name}"\n[[grid]]\nmechanisms = ["drf", "drfh"]\n'
    written, store = [], tmp_path / "store"
    for kind in ("clusters", "means"):
        experiment.write_text(text.replace("KIND", kind))
        harness.sweep(experiment, store=store, progress=False)
        (table,) = report.tables_of(str(experiment), report.Results(store))
        assert [label.lower() for label in table.frame["mechanism"]] == ["drfh", "drf*"]
        assert NOTE in table.notes
        written += table.write(tmp_path / kind)
    results = ["results", str(experiment), "--store", str(store)]
    for suffix in (".csv", ".md", ".tex", ".json"):
        written.append(tmp_path / f"x{suffix}")
        assert main([*results, "--export", str(written[-1])]) == 0
    for path in written:
        exported = path.read_text()
        assert "drf*" in exported.lower()
        assert NOTE in exported or path.suffix in (".csv", ".json")
    capsys.readouterr()
    assert main([*results, "--where", "mechanism=drf"]) == 0
    out = capsys.readouterr().out
    assert "drf*" in out
    assert NOTE in out
