"""Who computed a row, with what: versions, machine, commit."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from .._version import __version__
from ..engines.reference import solvers


@cache
def provenance() -> dict[str, Any]:
    """The columns of a row that are the same for every cell of a process."""
    return {
        "fairopt": __version__,
        "commit": _commit(),
        "versions": json.dumps(dict(solvers.versions()), sort_keys=True),
        "python": platform.python_version(),
        "machine": f"{platform.node()} ({platform.system()} {platform.machine()})",
        "cores": os.cpu_count() or 0,
    }


def _commit() -> str | None:
    """The commit of a checkout, `+` if files under version control were changed; None elsewhere."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        head, changed = (
            subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True, timeout=10).stdout
            for words in (["rev-parse", "--short=12", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return head.strip() + ("+" if changed.strip() else "")
