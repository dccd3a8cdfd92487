"""What the API pages of the site show says what it is, and what goes in."""

from __future__ import annotations

import inspect
import re

from test_site import load

import fairopt as fo


def parameters(thing: object) -> set[str]:
    """Of the section `Parameters`: `a, b : what they are`, or names alone on their line."""
    lines = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n---|\Z)", inspect.getdoc(thing) or "", re.M | re.S)
    named = re.findall(r"^(\w+(?:, \w+)*)(?: : |$)", lines[1], re.M) if lines else []
    return {name for some in named for name in some.split(", ")}


def test_everything_public_is_documented() -> None:
    things: dict[str, object] = {}
    for _, names in load("site_pages")._API.values():
        room, prefix = (getattr(fo, names), f"{names}.") if isinstance(names, str) else (fo, "")
        things |= {f"{prefix}{name}": getattr(room, name) for name in (room.__all__ if prefix else names)}
    kinds = {name: kind for name, kind in things.items() if inspect.isclass(kind)}
    functions = {name: thing for name, thing in things.items() if inspect.isfunction(thing)}
    assert len(kinds) > 20
    assert len(functions) > 40
    methods = {
        f"{name}.{own}": getattr(kind, own)
        for name, kind in kinds.items()
        for own, thing in vars(kind).items()
        if not own.startswith("_") and inspect.isfunction(getattr(thing, "__func__", thing))
    }
    for name, thing in {**functions, **kinds, **methods}.items():
        text = inspect.getdoc(thing) or ""
        # A dataclass without a docstring is given its signature.
        assert text not in ("", f"{name.rpartition('.')[2]}{inspect.signature(thing)}"), name  # type: ignore[arg-type]
    for name, thing in functions.items():
        taken = set(inspect.signature(thing).parameters)  # type: ignore[arg-type]
        assert parameters(thing) == taken or (len(taken) < 2 and not parameters(thing)), name
