from __future__ import annotations

import json
from pathlib import Path

import pytest

import fairopt as fo
from fairopt import harness, report
from fairopt.cli import main
from fairopt.harness.pooled import NOTE

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


def test_compare_default_is_every_registered_mechanism() -> None:
    frame = fo.compare(fo.papers.instance("drf-4.1"))
    assert {str(one) for name in fo.mechanisms.names() for one in fo.mechanisms.get(name).variants()} == set(
        frame.index
    )
    assert set(frame["status"].str.split(":").str[0]) == {"ok", "not applicable"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.toml"
    path.write_text(CLUSTER)
    return path


def test_who_answers_for_the_pool_is_marked_and_stands_last(file: Path) -> None:
    cluster = fo.Cluster.load(file)
    frame = fo.compare(cluster)
    pooled = frame[frame["pooled"]]
    assert {"DRF*", "CEEI*", "asset fairness*"} <= set(pooled.index)
    assert all(label.endswith("*") for label in pooled.index)
    assert not any(label.endswith("*") for label in frame.index[~frame["pooled"]])
    assert frame["pooled"].tolist() == sorted(frame["pooled"])
    for name in fo.mechanisms.names():
        for one in fo.mechanisms.get(name).variants():
            if str(one) in frame.index and frame.loc[str(one), "status"] != "ok":
                continue  # not applicable here: nothing answered
            seen = one.prepare(cluster)[0]
            assert (f"{one}*" in frame.index) == (len(seen.servers) < len(cluster.servers)), one


def test_one_server_is_its_own_pool() -> None:
    frame = fo.compare(fo.papers.instance("drf-4.1"), ["drf", "drfh"])
    assert frame.index.tolist() == ["DRF", "DRFH"]
    assert not frame["pooled"].any()


def test_the_mark_is_on_the_screen_and_in_exports(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(file), "--mechanisms", "drf", "drfh"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.split()[0].startswith("DRF")] == ["DRFH", "DRF*"]
    assert f"- {NOTE}" in lines
    assert main(["compare", str(file), "--mechanisms", "drf", "drfh", "--json"]) == 0
    assert [row["mechanism"] for row in json.loads(capsys.readouterr().out)] == ["DRFH", "DRF*"]

    experiment = tmp_path / "pooled.toml"
    text = f'title = "T"\ntable = "KIND"\nclusters.one = "{file.name}"\n[[grid]]\nmechanisms = ["drf", "drfh"]\n'
    store = tmp_path / "store"
    for kind in ("clusters", "means"):
        experiment.write_text(text.replace("KIND", kind))
        harness.sweep(experiment, store=store, progress=False)
        (table,) = report.tables_of(str(experiment), report.Results(store))
        assert [label.lower() for label in table.frame["mechanism"]] == ["drfh", "drf*"]
        assert NOTE in table.notes
        for path in report.write(table.frame, tmp_path / kind, table.name, table.caption):
            assert "drf*" in path.read_text().lower()
            assert path.suffix == ".csv" or NOTE in path.read_text()

    arguments = ["results", str(experiment), "--store", str(store)]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "drf*" in out
    assert NOTE in out
    for suffix in (".csv", ".md", ".tex", ".json"):
        assert main([*arguments, "--export", str(tmp_path / f"x{suffix}")]) == 0
        exported = (tmp_path / f"x{suffix}").read_text()
        assert "drf*" in exported
        assert NOTE in exported or suffix in (".csv", ".json")
    assert main([*arguments, "--where", "mechanism=drf"]) == 0
    assert "drf*" in capsys.readouterr().out
