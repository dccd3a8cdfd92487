"""What pyproject.toml cannot say: a wheel has experiments, figures and notebooks inside of the package."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHIPPED = {"experiments": ("*.toml", "*.json"), "paper_figures": ("*.py", "*.mplstyle"), "notebooks": ("*.ipynb",)}


class BuildWithData(build_py):
    """`fairopt/shipped/NAME` of the wheel is NAME of the checkout; `fairopt._shipped` finds both."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for name, patterns in SHIPPED.items():
            target = Path(self.build_lib, "fairopt", "shipped", name)
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            for pattern in patterns:
                for path in sorted(Path(__file__).resolve().parent.joinpath(name).glob(pattern)):
                    shutil.copy(path, target)


setup(cmdclass={"build_py": BuildWithData})
