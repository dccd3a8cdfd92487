"""No folder of this machine is in anything that may leave it: tables, reports, captions, pages, exports, JSON."""

from __future__ import annotations

import base64
import json
import re
import shutil
import zlib
from pathlib import Path

import pytest
from processes import ROOT

import fairopt as fo
from fairopt.app.cli import main
from fairopt.base.files import unplaced
from fairopt.workloads import open_workload, save_workload

from .conftest import Write

#: Of folders above everything here, with a space, as homes have them.
HOME = "jane-doe-at-home with-blanks"  # long: a picture in base64 has every short word
_CLUSTERS = """title = "Clusters by their folders"
clusters.file = "{home}/cluster.toml"
clusters.again = "{home}/again.toml"
clusters.broken = "{home}/broken.toml"
clusters.trace = "google:{home}/traces/google-2011?users=2"
clusters.lacking = "bitbrains?vms=3"
[[grid]]
mechanisms = ["drfh", "ceei"]
"""
_SIMULATIONS = """title = "Workloads by their folders"
workloads.own = "{home}/jobs"
workloads.again = "{home}/again"
workloads.broken = "{home}/broken"
[[grid]]
policies = ["best-fit-drfh"]
"""
_FIGURE = """NEEDS = ("{home}/means.toml",)
CAPTION = "What there is to see."
def figure(results, width=3.4):
    from matplotlib.figure import Figure
    drawn = Figure((width, 2))
    drawn.subplots().set_title("; ".join(results.of(NEEDS[0]).cells["source"]), fontsize=3)
    return drawn
"""
FILES = {
    "clusters.toml": f'table = "clusters"\n{_CLUSTERS}',
    "means.toml": f"repetitions = 2\n{_CLUSTERS}",
    "simulations.toml": _SIMULATIONS,
    "fig_own.py": _FIGURE,
    "broken.toml": "capacity = [[1, 2]\n",
}
COMMANDS = """
solve {home}/cluster.toml --json --out out/solved.csv --save out/solved.json
compare {home}/cluster.csv --json --out out/compared.tex
path {home}/cluster.toml --json --alphas 1 2 --out out/path.json
properties {home}/cluster.toml -m drfh --json --changes 2 --out out/properties.md
explore {home}/cluster.toml --out out/page.html
report {home}/cluster.toml --json
report {home}/cluster.toml --out out/report.md
report kubernetes:{home}/snapshot.json --what-if alpha=3 --out out/report.html
solve google:{home}/traces/google-2011?users=2 -m drfh --json
solve alibaba:{home}/traces?users=2 -m drfh --json
simulate {home}/jobs --json --out out/jobs.csv
sweep {home}/clusters.toml
sweep {home}/means.toml
sweep {home}/simulations.toml
tables {home}/clusters.toml {home}/means.toml {home}/simulations.toml --json --out out/tables
figures {home}/fig_own.py --out out/figures
results --export out/cells.csv --columns all
results --simulations --export out/simulated.json --columns all
"""


def inside(path: Path) -> str:
    """The text of a file, unpacked where it is packed."""
    if path.suffix in (".png", ".pdf"):
        return path.read_bytes().decode("latin-1")
    text = path.read_text(encoding="utf-8")
    packed = re.findall(r'id="data">([A-Za-z0-9+/=]*)</script>', text)
    return text + "".join(zlib.decompress(base64.b64decode(one)).decode() for one in packed)


def test_no_folder_leaves_the_machine(
    few_alphas: None,
    google: Write,
    alibaba: Write,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home = tmp_path / HOME
    home.mkdir()
    for trace in (google(), alibaba()):
        shutil.move(trace, home / "traces" / trace.name)
    cluster = fo.Cluster([[9, 18], [4, 30]], [[1, 4], [3, 1]])
    for name in ("cluster.toml", "again.toml", "cluster.csv"):
        cluster.save(home / name)
    for name in ("jobs", "again", "broken"):
        save_workload(open_workload("drf-policies?jobs=2"), home / name)
    (home / "broken" / "servers.csv").write_text("count,cpu\n-1,x\n")
    snapshot = json.loads((ROOT / "docs" / "explorer" / "snapshot.json").read_text())
    snapshot["items"] = [one for k, one in enumerate(snapshot["items"]) if one["kind"] != "Pod" or k % 25 == 0]
    (home / "snapshot.json").write_text(json.dumps(snapshot))
    for name, text in FILES.items():
        (home / name).write_text(text.format(home=home))
    monkeypatch.chdir(home)
    monkeypatch.setenv("FAIROPT_TRACES", str(home / "traces"))
    Path("out").mkdir()
    found: dict[str, str] = {}
    for line in COMMANDS.strip().splitlines():
        words = [word.format(home=home) for word in line.split()]
        assert main(words) == int(words[0] == "sweep"), line  # of broken files cells fail, and the rest goes on
        printed = capsys.readouterr().out
        found |= {line: printed} if "--json" in words else {}
    found |= {path.name: inside(path) for path in Path("out").rglob("*") if path.is_file()}
    assert len(found) > 30
    for name, text in {"means.tex": "cells failed", "clusters-lacking.tex": "no folder bitbrains",
                       "cells.csv": ",again.toml,", "simulated.json": "broken"}.items():  # fmt: skip
        assert text in found[name]
    told = {name: re.findall(f".{{,50}}(?:{'|'.join(HOME.split())}).{{,50}}", text) for name, text in found.items()}
    assert {name: places for name, places in told.items() if places} == {}


def test_only_folders_of_a_machine_go() -> None:
    for text in ("https://a.b/c/d, 32/3, 16/3", "tasks / share a/b", "nvidia.com/gpu", "../x/y.toml", "/x"):
        assert unplaced(text) == text
    assert unplaced(r"of C:\Users\me\x.csv:3 or /a b/x/y") == "of x.csv:3 or y"
