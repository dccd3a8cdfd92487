"""Store of results as lines of JSON, of which stored ones are not computed again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fairopt.base.progress import tqdm

Line = dict[str, Any]


def filled(
    path: Path, todo: Iterable[tuple[Any, ...]], key: Callable[[Line], tuple[Any, ...]], work: Callable[..., Line]
) -> list[Line]:
    """All lines of a file, after appending `work(*one)` for each of `todo` whose key is missing."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    done = {key(line) for line in lines}
    with path.open("a", encoding="utf-8") as store:
        for one in tqdm([one for one in todo if one not in done], unit="line"):
            lines.append(work(*one))
            print(json.dumps(lines[-1]), file=store, flush=True)
    return lines
