"""Pages of the explorer: one of the local server, and a file that works offline, with allocations at many alphas."""

from __future__ import annotations

import base64
import html
import json
import math
import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...base import files
from ...base.errors import FairoptError
from ...base.progress import tqdm
from ...game.two_sided import equilibrium_curve
from ...mechanisms.alphapf_vds import AlphaPFVDS
from ...mechanisms.psdsf import PSDSF
from ...model import cluster_file
from ...result import palette
from ...study.follower import Follower
from . import texts
from .edits import State
from .session import SIDE, Session, few, several

_PLACE = Path(__file__).with_name("static")
_PARTS = ("words.js", "draw.js", "tables.js", "asker.js", "explorer.js")
_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
{policy}<title>{title}</title>
{style}
</head>
<body>
"""

#: Content security policy of a page in a file, which forbids all network access.
_POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:\">\n"
)


def module() -> str:
    """JavaScript module for anywidget: a default export with `render`."""
    return _joined(*_PARTS) + "\nexport default { render };\n"


def program() -> str:
    """JavaScript program of a page outside of a notebook; it takes answers from the local server or from the file."""
    return _joined(*_PARTS, "hosts.js")


def style() -> str:
    """Style sheet of the explorer, with the colours that users have in figures."""
    text = _joined("explorer.css")
    for k, ground in enumerate(("light", "dark")):
        colours = [*enumerate(pair[k] for pair in palette.USERS), ("others", palette.OTHERS[k])]
        declared = " ".join(f"--fo-user-{name}: {colour};" for name, colour in colours)
        text = text.replace(f"/* users on {ground} ground */", declared)
    return text


def _joined(*names: str) -> str:
    return "\n".join((_PLACE / name).read_text(encoding="utf-8") for name in names)


#: Mechanisms whose allocations are stored for all of `session.ALPHAS`.
_FOLLOWED = (AlphaPFVDS.name, "alpha-fair")


def head(title: str, linked: bool) -> str:
    """Head of a page, with a link to the style sheet of the server if `linked`, otherwise with the style sheet."""
    sheet = '<link rel="stylesheet" href="explorer.css">' if linked else f"<style>\n{style()}</style>"
    return _HEAD.format(policy="" if linked else _POLICY, title=html.escape(title), style=sheet)


def served(title: str) -> str:
    """Page of the local server."""
    return (
        head(f"{title}: fairopt", linked=True)
        + '<main id="explorer"></main>\n<script type="module" src="explorer.js"></script>\n</body>\n</html>\n'
    )


def body(session: Session, progress: bool = False) -> str:
    """Body of a page: the element of the explorer, the precomputed answers, and the program."""
    packed = pack(answers(session, progress))
    return (
        f'<main id="explorer"></main>\n<script type="text/plain" id="data">{packed}</script>\n'
        f'<script type="module">\n{program()}</script>\n</body>\n</html>\n'
    )


def pack(data: Any) -> str:
    """Encode data for a page: JSON, compressed to about a fifth, in base64, which cannot contain markup."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def write(session: Session, path: Path, progress: bool = False) -> None:
    """Write the self-contained page atomically."""
    files.write(path, head(f"{session.source}: fairopt", linked=False) + body(session, progress), "page")


def answers(session: Session, progress: bool = False) -> dict[str, Any]:
    """Precompute the answers to all requests that the page can make."""
    start, state = session.begin(), session.state
    alphas = start["alphas"]
    values = list(map(float, alphas))
    cluster = session.start.edited(state.edits).cluster

    def stored(state: State) -> dict[str, Any]:
        requested = {"aside": True, "state": state.to_json(), "many": True}
        more.setdefault(state.mechanism, []).append(session.reply({"ask": "more"} | requested))
        return session.reply({"ask": "answer"} | requested)

    single = [name for name in dict.fromkeys((*SIDE, state.mechanism)) if name not in _FOLLOWED]
    views: dict[str, list[Any]] = {name: [] for name in (*_FOLLOWED, *single)}
    more: dict[str, list[Any]] = {}
    count = len(_FOLLOWED) * len(alphas) + len(single)
    with tqdm(total=count, desc="answers", unit="answer", disable=not progress, leave=False) as done:
        for name in _FOLLOWED:
            path = Follower(cluster, name, session.tol, alphas=values, refine=False)
            for alpha in values:
                requested = replace(state, mechanism=name, alpha=alpha)
                with suppress(FairoptError):  # then the session solves without a warm start, or answers with an error
                    session.know(requested, path(alpha))
                views[name].append(stored(requested))
                done.update()
        for name in single:
            last = views[AlphaPFVDS.name][-1]
            if name == PSDSF.name and "error" not in last:  # PS-DSF is alphaPF-VDS at alpha = infinity
                views[name], more[name] = [last | {"mechanism": PSDSF.title}], more[AlphaPFVDS.name][-1:]
            else:
                views[name] = [stored(replace(state, mechanism=name))]
            done.update()
    good = [name for name, found in views.items() if not all("error" in one for one in found)]
    start["mechanisms"] = [
        one | {"alpha": one["alpha"] and one["name"] in _FOLLOWED} for one in start["mechanisms"] if one["name"] in good
    ]
    inner = [alpha for alpha in values if 0 < alpha < math.inf and alpha != 1]
    said: dict[str, str] = {}
    with suppress(FairoptError):
        if few(cluster):
            # One curve serves all alphas. It is extended at both ends, since it may turn back at a fold beyond them.
            curve = equilibrium_curve(cluster, [inner[0] / 2, *inner, 2 * inner[-1]], seconds=1.0)
            # The page looks up these keys, which JavaScript formats in the same way.
            said = {f"{alpha:g}": several(curve, alpha) for alpha in inner}
    nearest = min(alphas, key=lambda alpha: abs(_place(alpha) - _place(state.alpha)))
    start["state"] = state.to_json() | {"alpha": nearest}
    calls = {}
    for name in good:
        call = texts.solved(session.mechanism(replace(state, mechanism=name, alpha=2.0)))
        calls[name] = call.replace("alpha=2.0", "alpha=ALPHA") if name in _FOLLOWED else call
    return {
        "start": start,
        "views": views,
        "several": said,
        "more": more,
        "head": texts.head(cluster),
        "calls": calls,
        "file": cluster_file.text(cluster),
    }


def _place(alpha: float | str) -> float:
    value = float(alpha)
    return 1.0 if math.isinf(value) else value / (1 + value)
