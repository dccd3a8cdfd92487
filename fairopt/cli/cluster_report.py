"""`fairopt report FILE`: how the users of a cluster stand, and what a change would do."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from ..errors import DataError
from . import _screen
from ._json import print_json
from ._open import open_named


def add(commands: Mapping[str, argparse.ArgumentParser]) -> None:
    """The options of `report`."""
    from . import _FILE_HELP

    command = commands["report"]
    command.formatter_class, command.epilog = argparse.RawDescriptionHelpFormatter, _FILE_HELP
    command.add_argument("file", metavar="FILE", help="see below")
    command.add_argument("--traces", metavar="DIR", help="folder of the real traces; default: FAIROPT_TRACES")
    command.add_argument("--mechanism", "-m", default="alphapf-vds", help="whose answer counts; default: %(default)s")
    command.add_argument("--alpha", default="1", help="a number or inf; default: %(default)s")
    command.add_argument(
        "--what-if",
        action="append",
        default=[],
        metavar="CHANGE",
        help="weight.NAME=2, alpha=3, nodes.NAME=+4; several times for several changes at once",
    )
    command.add_argument(
        "--weights",
        choices=("each", "shared"),
        default="each",
        help="a namespace's or account's weight counts for each of its users, or is shared among them",
    )
    command.add_argument("--out", metavar="FILE", help="write .md or .html (with the explorer) instead of printing")
    command.add_argument("--json", action="store_true", help="print JSON instead of tables")


def report(options: argparse.Namespace) -> int:
    """`fairopt report FILE [--what-if ...] [--out FILE]`."""
    from ..explorer import State
    from ..explorer.standing import standing
    from ..explorer.state import alpha
    from ..model import _files
    from ..report import standing as wording

    out = Path(options.out) if options.out else None
    if out is not None and out.suffix.lower() not in (".md", ".html", ".htm"):
        raise DataError(f"--out {out}: a report ends in .md or .html")
    if options.weights == "shared" and "weights=shared" in options.file:
        raise DataError(f"{options.file} shares its weights already, and --weights shared would again; leave one out")
    named = open_named(options.file, options.traces)
    edits = {"weights": "shared"} if options.weights == "shared" else {}
    found = standing(
        named.cluster,
        State(options.mechanism, alpha(options.alpha), edits),
        source=(named.source or Path(options.file).name).splitlines()[0],
        running=named.running,
        dropped=named.dropped,
        requested=options.what_if,
    )
    if out is not None:
        made = wording.as_markdown(found) if out.suffix == ".md" else wording.as_html(found, sys.stderr.isatty())
        _files.write(out, made, "report")
        print(f"-> {out}")
    elif options.json:
        tables = {"measures": found.measures, "groups": found.groups, "users": found.users}
        tables |= {"resources": found.resources, "margins": found.margins}
        tables |= {} if found.changes is None else {"changes": found.changes}
        print_json({name: frame.to_dict(orient="records") for name, frame in tables.items()} | {"notes": found.notes})
    else:
        print(wording.text(found, lambda frame: _screen.table(frame, 40)))
    return 0
