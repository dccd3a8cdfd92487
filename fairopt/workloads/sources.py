"""Open a workload by a short name: `bitbrains?vms=50&seed=3`, `google:DIR?at=600`, `alibaba-like`.

    name[:directory][?option=value&option=value...]

A trace without a directory is looked for below the traces root: the `traces` argument, else the environment
variable FAIROPT_TRACES. Where there is none, the calibrated generator stands in and the snapshot says so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np

from .. import _plugins
from ..errors import DataError
from ._registry import ALIASES, GENERATORS, READERS, STAND_INS, Entry
from ._snapshot import Snapshot

VARIABLE = "FAIROPT_TRACES"


def open_source(name: str, *, traces: str | Path | None = None, rng: np.random.Generator | None = None) -> Snapshot:
    """The cluster that `name` stands for.

    Parameters
    ----------
    name
        One of `known()`, perhaps with a directory (the trace, a folder above or a part of it) and options; the
        options are the arguments of the reader or generator, and `seed`.
    traces
        The folder that holds the traces. Default: the environment variable FAIROPT_TRACES.
    rng
        For everything that is drawn. `seed=` in the name comes first; without either the seed is 0.

    Raises
    ------
    DataError
        An unknown name or option (the message lists the known ones), a value that does not fit, an option of a
        trace that is not there, or what the reader raises.
    """
    found = _read(name)
    given, generator = found.options, _generator(found.seed, rng)
    if found.kind in GENERATORS:
        return GENERATORS[found.kind].run(given, rng=generator)
    trace = trace_folder(name, traces)
    if trace is not None:
        return READERS[found.kind].run(given, directory=trace, rng=generator)
    root = traces_root(traces)
    folder = READERS[found.kind].folder
    why = f"{VARIABLE} is not set" if root is None else f"{root} holds no folder {folder}"
    return _stand_in(found.kind, given, generator, why)


def check_source(name: str, *, traces: str | Path | None = None, there: bool = False) -> None:
    """Raise what `open_source` would raise of the name alone, before anything is read or drawn.

    `there` checks as well that the generator that would stand in for a trace has the options.

    Raises
    ------
    DataError
        As there; `where` names the option, if it is about one.
    """
    found = _read(name)
    _generator(found.seed, None)
    if there and found.kind in READERS and trace_folder(name, traces) is None:
        _standing_in(found.kind, found.options)


@dataclass(frozen=True)
class _Source:
    """A name, read: kind, options, and the seed as text."""

    kind: str
    options: dict[str, Any]
    seed: str | None


def _read(name: str) -> _Source:
    _plugins.installed()
    path, _, query = name.partition("?")
    kind, colon, directory = path.partition(":")
    given = _pairs(query, name)
    seed = given.pop("seed", None)
    if kind in GENERATORS:
        if colon:
            raise DataError(f"{kind!r} is a generator and takes no directory; leave out {colon + directory!r}")
        return _Source(kind, _options(kind, given), seed)
    trace = ALIASES.get(kind, kind)
    if trace not in READERS:
        names = ", ".join([*READERS, *ALIASES, *GENERATORS])
        raise DataError(f"there is no workload {kind!r}; known are {names}")
    options = _options(trace, given)
    if colon and not directory:
        raise DataError(f"{name!r} names no directory after the colon; leave out the colon or name one")
    return _Source(trace, options, seed)


def trace_folder(name: str, traces: str | Path | None = None) -> Path | None:
    """The folder of the trace that `open_source` would read; None for a generator, named or standing in."""
    kind, _, directory = name.partition("?")[0].partition(":")
    reader = READERS.get(ALIASES.get(kind, kind))
    if reader is None:
        return None
    return Path(directory) if directory else _trace_folder(traces_root(traces), reader.folder)


def traces_root(traces: str | Path | None = None) -> Path | None:
    """The folder that holds the traces: the argument, else what FAIROPT_TRACES says; None if neither does.

    Raises
    ------
    DataError
        When that is not a folder.
    """
    named = traces if traces is not None else os.environ.get(VARIABLE)
    if not named:
        return None
    root = Path(named)
    if not root.is_dir():
        by = "traces" if traces is not None else f"the environment variable {VARIABLE}"
        raise DataError(f"{by} names {root}, which is not a folder")
    return root


def known() -> dict[str, str]:
    """Every name with one line about it and its options."""
    _plugins.installed()
    entries = {**READERS, **GENERATORS}
    return {
        name: f"{entry.description}; options {', '.join([*entry.options, 'seed'])}" for name, entry in entries.items()
    }


def _pairs(query: str, name: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise DataError(f"the options of {name!r} must read option=value&option=value") from None
    result = dict(pairs)
    if len(result) < len(pairs):
        raise DataError(f"{name!r} gives an option twice")
    return result


def _options(name: str, given: Mapping[str, str]) -> dict[str, Any]:
    parsers = {**READERS, **GENERATORS}[name].options
    result = {}
    for option, text in given.items():
        if option not in parsers:
            raise DataError(f"{name} has no option {option!r}; known are {', '.join([*parsers, 'seed'])}", (option,))
        try:
            result[option] = parsers[option](text)
        except DataError as error:
            raise DataError(f"option {option} of {name} cannot be {text!r}: {error}", (option,)) from None
        except (ValueError, KeyError):
            raise DataError(f"option {option} of {name} cannot be {text!r}", (option,)) from None
    return result


def _generator(seed: str | None, rng: np.random.Generator | None) -> np.random.Generator:
    if seed is None:
        return rng if rng is not None else np.random.default_rng(0)
    if not seed.isdecimal():
        raise DataError(f"seed must be a whole number >= 0; got {seed!r}", ("seed",))
    return np.random.default_rng(int(seed))


def _trace_folder(root: Path | None, begins: str) -> Path | None:
    """The trace's folder below the root, or the root itself if it is that folder."""
    if root is None:
        return None
    folders = [path for path in sorted(root.iterdir()) if path.is_dir() and path.name.startswith(begins)]
    return folders[0] if folders else root if root.name.startswith(begins) else None


def _stand_in(trace: str, options: dict[str, Any], rng: np.random.Generator, why: str) -> Snapshot:
    generator, whole = _standing_in(trace, options)
    drawn = generator.run(whole, rng=rng)
    source = f"{drawn.source} (a calibrated generator in place of the trace {trace}: {why})"
    return Snapshot(drawn.cluster, source, drawn.report)


def _standing_in(trace: str, options: dict[str, Any]) -> tuple[Entry, dict[str, Any]]:
    """The generator for a trace that is not there, and options that make sense without the trace."""
    generator = GENERATORS[STAND_INS[trace]]
    if missing := [option for option in options if option not in generator.options]:
        raise DataError(
            f"option {missing[0]} of {trace} needs the trace, and there is none; "
            f"name its folder, {trace}:DIR, or set {VARIABLE}",
            (missing[0],),
        )
    for option in ("users", "servers", "vms"):
        if option in options and not isinstance(options[option], int):
            raise DataError(f"option {option} of {trace} must be a whole number where there is no trace", (option,))
    return generator, options


def made_by(name: str) -> str:
    """The module whose function makes the cluster of a source, where no trace is read."""
    kind = name.partition("?")[0].partition(":")[0]
    entry = GENERATORS.get(STAND_INS.get(ALIASES.get(kind, kind), kind))
    return "" if entry is None else entry.function.__module__
