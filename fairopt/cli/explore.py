"""`fairopt explore FILE`: a cluster in the browser, to look at and to tweak; or as a page to share."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from ..errors import DataError
from ._open import open_cluster


def add(commands: Mapping[str, argparse.ArgumentParser]) -> None:
    """The options of `explore`."""
    from . import _FILE_HELP

    command = commands["explore"]
    command.formatter_class, command.epilog = argparse.RawDescriptionHelpFormatter, _FILE_HELP
    command.add_argument("file", metavar="FILE", help="see below")
    command.add_argument("--traces", metavar="DIR", help="folder of the real traces; default: FAIROPT_TRACES")
    command.add_argument("--mechanism", "-m", default="alphapf-vds", help="to begin with; default: %(default)s")
    command.add_argument("--alpha", default="1", help="to begin with, a number or inf; default: %(default)s")
    command.add_argument("--out", metavar="PAGE.html", help="write one file that works offline, instead of serving")
    command.add_argument("--port", type=int, default=0, help="default: any that is free")
    command.add_argument("--no-browser", action="store_true", help="print the address, and open nothing")


def explore(options: argparse.Namespace) -> int:
    """`fairopt explore FILE [--out page.html]`; serves until Ctrl-C."""
    from ..explorer import Session, State
    from ..explorer import page as pages
    from ..explorer.state import alpha

    out = Path(options.out) if options.out else None
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise DataError(f"--out {out}: a page ends in .html")
    cluster, source = open_cluster(options.file, options.traces)
    name = (source or Path(options.file).name).splitlines()[0]
    session = Session(cluster, State(options.mechanism, alpha(options.alpha)), name)
    if out is not None:
        pages.write(session, out, progress=sys.stderr.isatty())
        print(f"-> {out}")
        return 0
    from ..explorer.server import Server

    with Server(session, options.port) as server, TemporaryDirectory() as folder:
        try:
            print(f"{name}\n{server.address} (Ctrl-C stops)", flush=True)
            if not options.no_browser:
                # Words that a browser is started with can be read by every account: the address comes from a file.
                page = Path(folder, "explorer.html")
                page.write_text(f'<meta http-equiv="refresh" content="0; url={server.address}">', encoding="utf-8")
                webbrowser.open(page.as_uri())
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            print()
    return 0
