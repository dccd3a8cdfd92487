"""The commands explore, report and shadow: a cluster in the browser, and reports on its users, now and over time."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from pathlib import Path
from tempfile import TemporaryDirectory

from ...base.errors import DataError
from ...base.names import some
from . import _screen
from ._open import opened
from ._screen import print_json
from ._slips import listed


def _out(options: argparse.Namespace, what: str, *endings: str) -> Path | None:
    """File to write, after a check that its name has one of the `endings` or `.htm`; None without `--out`."""
    out = Path(options.out) if options.out else None
    if out is not None and out.suffix.lower() not in (*endings, ".htm"):
        raise DataError(f"--out {out}: a {what} ends in {' or '.join(endings)}")
    return out


def explore(options: argparse.Namespace) -> int:
    """`fairopt explore FILE [--out page.html]`: serve the explorer until Ctrl-C, or write it as a page."""
    from ..explorer import Session, State
    from ..explorer import page as pages
    from ..explorer.edits import alpha

    out = _out(options, "page", ".html")
    named = opened(options)
    name = named.called.splitlines()[0]
    state = State.usual(named.snapshot, options.mechanism, alpha(options.alpha))
    session = Session(named.cluster, state, name, named.running, options.tol, named.snapshot)
    if out is not None:
        pages.write(session, out, progress=sys.stderr.isatty())
        print(f"-> {out}")
        return 0
    from ..explorer.server import Server

    with Server(session, options.port) as server, TemporaryDirectory() as folder:
        try:
            print(f"{name}\n{server.address} (Ctrl-C stops)", flush=True)
            if not options.no_browser:
                # All accounts can see the arguments of a process, so the address with its token is passed in a file.
                page = Path(folder, "explorer.html")
                page.write_text(f'<meta http-equiv="refresh" content="0; url={server.address}">', encoding="utf-8")
                webbrowser.open(page.as_uri())
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            print()
    return 0


def report(options: argparse.Namespace) -> int:
    """`fairopt report FILE [--user NAME] [--what-if ...] [--out FILE]`: report on a cluster, a user or a queue."""
    from ...base import files
    from ..explorer import State
    from ..explorer import report as wording
    from ..explorer.document import document
    from ..explorer.edits import alpha
    from ..explorer.standing import COMPARED, standing
    from ..explorer.why import sentences, why

    out = _out(options, "report", ".md", ".html")
    asks = [f"--{kind}" for kind in ("user", "queue") if getattr(options, kind) is not None]
    if len(asks) + (out is not None) > 1:
        raise DataError(f"{asks[0]} cannot be combined with {'--out, as its answer is printed' if out else asks[1]}; "
                        "leave one out")  # fmt: skip
    if options.weights == "shared" and "weights=shared" in options.file:
        raise DataError(f"{options.file} shares weights among users already; leave out --weights shared")
    named = opened(options)
    edits = {"weights": "shared"} if options.weights == "shared" else {}
    first, *others = listed([options.mechanism or ""]) or [""]
    found = standing(
        named.cluster,
        State.usual(named.snapshot, first, alpha(options.alpha), edits),
        source=named.called.splitlines()[0],
        snapshot=named.snapshot,
        requested=options.what_if,
        policy=options.policy,
        compared=others or COMPARED,
        tol=options.tol,
    )
    asked = why(found, options.queue or options.user, options.queue is not None) if asks else None
    if out is not None:
        page = wording.as_markdown(found) if out.suffix == ".md" else wording.as_html(found, sys.stderr.isatty())
        files.write(out, page, "report")
        print(f"-> {out}")
    elif options.json:
        print_json(document(found, asked))
    elif asked is not None and found.judged is not None:
        _screen.say(line for one in asked for line in sentences(one, found.judged.mechanism))
    else:
        print(wording.text(found, _screen.table))
    return 0


#: Columns of a shadow that are shown on a terminal.
_SHADOW = ("queue", "running", "wanted", "entitled", "share", "share_entitled", "shortfall", "since")


def shadow(options: argparse.Namespace) -> int:
    """`fairopt shadow DIR [--out FILE.csv]`: use and entitlements of queues over time.

    The exit status is 1 if no snapshot could be used, and 130 after Ctrl-C.
    """
    from ..explorer.shadow import shadow as over_time

    found = over_time(
        options.folder, options.mechanism, half_life=options.half_life, out=options.out, tol=options.tol,
        progress=_screen.shows_progress(options),
    )  # fmt: skip
    for name, reason in found.notes.items():
        _screen.warn(f"{name}, left out: {reason}")
    if found.undated:
        _screen.warn(f"no date in their names, so that the last change of the file counts: {some(found.undated)}")
    frame = found.frame
    if options.plot and len(frame):
        from ...harness.report import figures

        figures.write(found.draw(), options.plot)
    if options.json:
        times = {name: frame[name].astype(str).where(frame[name].notna(), None) for name in ("time", "since")}
        print_json(frame.assign(**times).to_dict(orient="records"))
    elif len(frame):
        last, first, end = found.last, frame["time"].min(), frame["time"].max()
        said = f"{frame['time'].nunique()} snapshots from {first} to {end}, by {last['mechanism'].iloc[0]}"
        _screen.say([f"{said}; the last one:"])
        below = last["shortfall"] > 0
        percent = {name: [f"{part:.1%}" for part in last[name]] for name in ("share", "share_entitled")}
        print(_screen.table(last.assign(**percent, since=last["since"].astype(str).where(below, ""))[list(_SHADOW)]))
        _screen.say(f"Held back: {text}" for text in dict.fromkeys(last.loc[below, "held_by"]))
        _screen.written(options)
    if found.interrupted:
        _screen.warn("interrupted; the same command with --out goes on")
    return 130 if found.interrupted else int(frame.empty)
