"""The commands new and notebooks: editable copies of experiments, figures and notebooks of the package."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from ... import harness
from ...base import files
from ...base import shipped as _shipped
from ...base.errors import DataError
from ...harness.report import figures

#: Template of an experiment.
_EXPERIMENT = """\
title = "{name}"
source = "our own"
repetitions = 3                                 # draws of every cluster that depends on a seed

[clusters]
drawn = {{ source = "lognormal", users = 12, servers = 6 }}   # `fairopt sources` lists others
example = "paper:pf-fig1"                       # `fairopt instances` lists others

[[grid]]
mechanisms = ["drfh", "tsf", "ps-dsf"]          # `fairopt mechanisms` lists others

[[grid]]
mechanisms = "alphapf-vds"
alphas = [0.5, 1, 3, inf]

[smoke]                                         # the tiny version: fairopt sweep {name} --smoke
repetitions = 1
"""
#: Template of a figure.
_FIGURE = '''\
"""{name}: utilization by mechanism."""

from __future__ import annotations

from matplotlib.figure import Figure
from paper_figures.style import SINGLE, groups, new

from fairopt.report import Results, interval

NEEDS = ("{name}",)  # experiments
CAPTION = "Utilization by mechanism: means over draws and clusters, with 95% intervals. What to see in it."


def figure(results: Results, width: float = SINGLE) -> Figure:
    """Means over all draws and clusters, with 95% confidence intervals; nothing is solved here."""
    means = interval(results.of("{name}").cells, ["mechanism"], "utilization")
    drawn, table = new(width, 2.2)
    groups(table[0, 0], means["mechanism"], [("utilization", means["mean"], means["half"])])
    table[0, 0].tick_params(axis="x", rotation=30)
    table[0, 0].set_ylabel("utilization")
    return drawn
'''


def new(options: argparse.Namespace) -> int:
    """`fairopt new experiment NAME` and `fairopt new figure NAME`: write a template, or a copy of a shipped file."""
    if not re.fullmatch(r"\w[\w-]*", options.name) or len(options.name) > 100:
        raise DataError(f"{options.name!r} is no name for a file: write letters, digits, - and _")
    experiment = options.what == "experiment"
    shipped, form, plain, given, lists = (
        ("experiments", "{}.toml", _EXPERIMENT, "experiments", "sweep --list") if experiment
        else (figures.FOLDER, "fig_{}.py", _FIGURE, "figures", "figures --list")
    )  # fmt: skip
    source = _shipped.folder(shipped) / form.format(options.copied or options.name)
    target = Path(given, form.format(options.name))
    if options.copied and not source.is_file():
        raise DataError(f"there is no {options.what} {options.copied!r} to copy; fairopt {lists} lists them")
    if source.is_file():
        _copy(target, source.read_text(encoding="utf-8").replace("from .", f"from {figures.FOLDER}."))
    else:
        _copy(target, plain.format(name=options.name))
    if source.is_file() and experiment:
        _copy_clusters(source, target.parent)
    print(
        f"fairopt sweep {options.name} --dry-run says how long it takes, fairopt tables {options.name} shows it"
        if experiment
        else f"fairopt figures {target} draws it"
    )
    return 0


def notebooks(options: argparse.Namespace) -> int:
    """`fairopt notebooks DIR`: copy the shipped notebooks."""
    folder = Path(options.folder)
    sources = sorted(_shipped.folder("notebooks").glob("*.ipynb"))
    for source in sources:
        _require_absent(folder / source.name)
    for source in sources:
        _copy(folder / source.name, source.read_text(encoding="utf-8"))
    return 0


def _copy_clusters(source: Path, folder: Path) -> None:
    """Copy the cluster files that an experiment refers to; existing files are left unchanged."""
    experiment = harness.load(source)
    for one in experiment.sources:
        given, copied = source.parent / one.text, folder / one.text
        if given.is_file() and not copied.exists():
            _copy(copied, given.read_text(encoding="utf-8"))


def _copy(target: Path, text: str) -> None:
    _require_absent(target)
    files.folder(target.parent)
    files.write(target, text, "copy")
    print(f"-> {target}")


def _require_absent(target: Path) -> None:
    if target.exists():
        raise DataError(f"{target} is there already, and is left alone; choose another name or move it")
