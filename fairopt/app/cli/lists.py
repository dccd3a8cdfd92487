"""The commands that list names, and the commands docs, schema, warmup and bench."""

from __future__ import annotations

import argparse
import os
import pydoc
import webbrowser
from pathlib import Path

from ...base import clock, shipped
from ...base.errors import DataError, FairoptError
from ...base.libraries import pd
from ...harness import papers, report
from ...harness.report import instances as frozen
from ...harness.report.schemas import SCHEMAS
from ...workloads import known, known_workloads
from . import _screen
from ._screen import print_json


def mechanisms(options: argparse.Namespace) -> int:
    """`fairopt mechanisms`: list the mechanisms."""
    return give(report.mechanism_table().frame, options)


def instances(options: argparse.Namespace) -> int:
    """`fairopt instances`: list the worked examples of the papers."""
    rows = [
        {"name": f"paper:{name}", "paper": one.paper, "where": one.where, "what": one.description}
        for name, one in sorted(papers.instances().items())
    ]
    return give(pd.DataFrame(rows), options)


def sources(options: argparse.Namespace) -> int:
    """`fairopt sources` and `fairopt workloads`: list sources and their options."""
    rows = []
    for name, text in (known_workloads() if options.command == "workloads" else known()).items():
        about, _, of = text.partition("; options ")
        rows.append({"name": name, "what": about, "options": of})
    return give(pd.DataFrame(rows), options)


workloads = sources


def policies(options: argparse.Namespace) -> int:
    """`fairopt policies`: list the scheduling policies."""
    from ...scheduling.policies import REGISTRY

    rows = [{"name": name, "policy": kind.title, "source": kind.source} for name, kind in sorted(REGISTRY.items())]
    return give(pd.DataFrame(rows), options)


def give(frame: pd.DataFrame, options: argparse.Namespace) -> int:
    """Print a list and write it to `--out`; on a terminal, where a table would be truncated, print wrapped lines."""

    def lines() -> None:
        for row in frame.to_dict(orient="records"):
            _screen.say([": ".join([row.pop("name"), "; ".join(str(text) for text in row.values() if text)])])

    return _screen.give(frame, options, None if _screen.width() is None else lines)


def docs(options: argparse.Namespace) -> int:
    """`fairopt docs`: open the built site if it exists, otherwise show the shipped Markdown files in a pager."""
    folder, site = shipped.folder("docs"), shipped.folder("build").resolve() / "site" / "index.html"
    pages = {str(path.relative_to(folder).with_suffix("")): path for path in sorted(folder.rglob("*.md"))}
    wanted = (options.page or "").removeprefix("docs/").removesuffix(".md")
    if wanted and wanted not in pages:
        raise DataError(f"there is no page {wanted!r}; known: {', '.join(pages)}")
    if not wanted and site.is_file() and (options.where or webbrowser.open(site.as_uri())):
        if options.where:
            print(site)
    elif options.where:
        print(pages[wanted or "index"])
    elif wanted:
        pydoc.pager(pages[wanted].read_text(encoding="utf-8"))
    else:
        titles = {
            name: path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") for name, path in pages.items()
        }
        listed = [f"{name:{max(map(len, pages)) + 2}}{title}" for name, title in titles.items()]
        pydoc.pager("\n".join(["`fairopt docs PAGE` shows one of", "", *listed, ""]))
    return 0


def schema(options: argparse.Namespace) -> int:
    """`fairopt schema`: print the JSON schema of a file format."""
    print_json(SCHEMAS[options.kind]())
    return 0


def warmup(options: argparse.Namespace) -> int:
    """`fairopt warmup`: compile all loops that commands may need; an error if no folder can store them."""
    from ...base import dispatchers
    from ...harness import warm

    watch = clock.Watch()
    warm.everything(progress=_screen.shows_progress(options))
    if not (folders := dispatchers.folders()):
        raise FairoptError("there is no folder for compiled loops; set NUMBA_CACHE_DIR to a folder that can be written")
    where, made = os.path.commonpath(folders), len(dispatchers.COMPILED)
    if options.json:
        print_json({"compiled": made, "seconds": watch.loops, "folder": where})
    elif made:
        print(f"{made} loops compiled in {watch.loops:.0f} s, and stored in {where}")
    else:
        print(f"all loops are compiled already, and stored in {where}")
    return 0


def bench(options: argparse.Namespace) -> int:
    """`fairopt bench`: build the library of instances, or list the instances."""
    if options.action == "list":
        print("\n".join(f"{name:44}{about['about']}" for name, about in frozen.known().items()))
        return 0
    rows = []
    for row in frozen.export(Path(options.out), options.names or None):
        rows.append(row)
        print(f"{len(rows)} {row['name']}: {row['answers']} answers, {row['exact']} exact", flush=True)
    answers, exact = (sum(row[key] for row in rows) for key in ("answers", "exact"))
    print(
        f"{len(rows)} instances, {answers} answers, {exact} exact, in {options.out}.zip; {clock.cpu():.0f} CPU seconds"
    )
    return 0
