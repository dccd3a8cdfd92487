"""What checks a commit here, and what checks it elsewhere, is what `make test` runs."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")  # comes with dask

ROOT = Path(__file__).resolve().parent.parent


def read(name: str) -> dict[str, Any]:
    document = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


def test_hooks_are_the_tools_of_the_makefile() -> None:
    (local,) = read(".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lint_and_types = makefile[makefile.index("\nlint:") : makefile.index("\nunit:")]
    commands = [
        command.removesuffix(" .") for command in re.findall(r"^\t\$\(BIN\)/(.*)$", lint_and_types, re.MULTILINE)
    ]
    assert [hook["entry"] for hook in local["hooks"]] == [f".venv/bin/{command}" for command in commands]
    for hook in local["hooks"]:
        assert hook["language"] == "system"
        # Whoever looks at all files is not given some: import contracts and types hold for the whole package.
        assert hook.get("pass_filenames", True) == hook["entry"].startswith(".venv/bin/ruff")
        assert re.compile(hook.get("files", "")).search("fairopt/model/cluster.py")


def test_the_workflow_runs_the_whole_check() -> None:
    workflow = read(".github/workflows/ci.yml")
    assert set(workflow[True]) == {"push", "pull_request", "workflow_dispatch"}  # to YAML 1.1, `on` is a truth value
    (job,) = workflow["jobs"].values()
    checkout, python, check, explorer, pictures = job["steps"]
    assert checkout["uses"].startswith("actions/checkout@")
    assert python["uses"].startswith("actions/setup-python@")
    lowest = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    assert f">={python['with']['python-version']}" == lowest
    assert check["run"] == ".ci/run"
    assert os.access(ROOT / check["run"], os.X_OK)
    # What browser tests saw is kept, also where a test failed.
    assert "pytest -m long tests/explorer" in explorer["run"]
    assert pictures["if"] == "always()"
    for step in (check, explorer):
        assert step["env"]["FAIROPT_SHOTS"].endswith(f"/{pictures['with']['path']}")
