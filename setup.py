"""What pyproject.toml cannot say: a wheel has docs, experiments, figures and notebooks inside of the package.

Its description is README, whose links lead where `[project.urls]` says that the repository is; without, they are words.
"""

from __future__ import annotations

import re
import runpy
import shutil
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
SHIPPED = {
    "docs": ("*.md", "algorithms/*.md", "first-task/*", "explorer/*.json", "witnesses/*.json"),
    "experiments": ("*.toml", "*.json"),
    "paper_figures": ("*.py", "*.mplstyle"),
    "notebooks": ("*.ipynb",),
    "tools": ("check.py",),
    "vectors": ("*.json",),
}


class BuildWithData(build_py):
    """`fairopt/shipped/NAME` of the wheel is NAME of the checkout; `fairopt.base.shipped` finds both."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for name, patterns in SHIPPED.items():
            target = Path(self.build_lib, "fairopt", "shipped", name)
            shutil.rmtree(target, ignore_errors=True)
            for path in sorted(path for pattern in patterns for path in (ROOT / name).glob(pattern)):
                place = target / path.relative_to(ROOT / name)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, place)
        Path(self.build_lib, "fairopt", "shipped", "COMMIT").write_text(commit(), encoding="utf-8")


class SdistWithCommit(sdist):
    """A source distribution, which is no checkout, has the commit in a file."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        Path(base_dir, "COMMIT").write_text(commit(), encoding="utf-8")


def commit() -> str:
    """Commit of the checkout, or the one that a source distribution says; '' if neither is known."""
    here, said = runpy.run_path(str(ROOT / "fairopt" / "base" / "version.py"))["commit"](ROOT), ROOT / "COMMIT"
    return here or (said.read_text(encoding="utf-8") if said.is_file() else "")


def description() -> str:
    """README as it is shown elsewhere than in a checkout."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = re.sub(r"<!--.*?-->\n", "", text)
    if address := project.get("urls", {}).get("Repository"):
        text = text.replace("ADDRESS", address)
        text = re.sub(r"(!\[[^\]]*\])\((?!https?:)", rf"\1({address}/raw/HEAD/", text)
        return re.sub(r"\]\((?!https?:)", f"]({address}/blob/HEAD/", text)
    # A picture goes with the line below that says what is on it.
    return re.sub(r"!\[[^\]]*\]\([^)]*\)\n+.*\n+|\[([^\]]*)\]\((?!https?:)[^)]*\)", lambda found: found[1] or "", text)


setup(
    cmdclass={"build_py": BuildWithData, "sdist": SdistWithCommit},
    long_description=description(),
    long_description_content_type="text/markdown",
)
