"""Version of the package, and the commit that it was built from.

setup.py runs this module, which therefore imports no other module of fairopt.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

__version__ = "0.2.0"


def commit(root: Path) -> str | None:
    """Commit of a checkout, with `+` if tracked files are modified; None outside of a checkout."""
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


def built() -> str | None:
    """Commit that an installed package was built from in a checkout or a source distribution; None if it is unknown."""
    try:
        return Path(__file__).resolve().parents[1].joinpath("shipped", "COMMIT").read_text(encoding="utf-8") or None
    except OSError:
        return None
