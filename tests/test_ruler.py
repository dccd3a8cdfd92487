"""`tools/ruler.py`: a run goes on where it was, and answers that moved, were lost or are late are counted and named."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).resolve().parent.parent / "tools"))

import ruler

TWENTY = r"^(nested|zeros)/3x2/./(DRFH|CMMF|CEEI|alphaPF-VDS\(3\)|PS-DSF)$"


def run(path: Path, *options: str) -> pd.DataFrame:
    subprocess.run([sys.executable, ruler.__file__, "run", path, "--only", TWENTY, *options], check=True)
    return pd.read_csv(f"{path}.csv", index_col="name")


def test_names_are_unique() -> None:
    names = [problem.name for problem in ruler.corpus()]
    assert len(set(names)) == len(names)
    assert sum(re.search(TWENTY, name) is not None for name in names) == 20


def test_twenty_problems(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    found = run(old)
    assert (found["status"] == "certified").tolist() == [True] * 20

    far, near, lost = found.index[:3]
    with np.load(f"{old}.npz") as kept:
        answers = dict(kept)
    answers[far][0] *= 1.001
    answers[near][0] *= 1.00001
    np.savez(f"{new}.npz", **answers)
    found.assign(status=found["status"].mask(found.index == lost, "refused")).to_csv(f"{new}.csv")
    total, *lists = re.split(r"\n\n(?=Not certified|Moved|Slower|Not the same)", ruler.compare(old, new))
    assert [int(cell) for cell in total.splitlines()[-1].split("|")[2:7]] == [20, 20, 19, 2, 1]
    assert [each.partition("\n")[0].rpartition(" ")[2] for each in lists] == ["1", "1", "0", "0"]
    assert lost in lists[0]
    assert far in lists[1]

    (part,) = tmp_path.glob("*.jsonl")
    lines = part.read_text(encoding="utf-8").splitlines()
    part.write_text("\n".join([*lines[:9], lines[9][:30]]), encoding="utf-8")  # interrupted at the tenth problem
    again = run(old, "--limit", "1e-6")
    assert again.loc[found.index[:9], "cpu"].tolist() == found["cpu"].tolist()[:9]
    assert again.loc[found.index[9:], "status"].tolist() == ["no answer"] * 11
