"""Python in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def python(*words: str, folder: Path | None = None, **environment: str) -> str:
    """What a new process prints, which must end well; it finds the checkout, and no traces."""
    inherited = {name: text for name, text in os.environ.items() if name != "FAIROPT_TRACES"}
    env = inherited | {"PYTHONPATH": str(ROOT)} | environment
    done = subprocess.run([sys.executable, *words], cwd=folder, env=env, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout
