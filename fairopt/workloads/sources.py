"""Registries of sources of clusters and workloads, which are opened by name: `bitbrains?vms=50&seed=3`, `jobs.swf`.

    name[:directory][?option=value&option=value...]

A trace without a directory is searched below the traces root: the argument `traces`, otherwise the environment variable
FAIROPT_TRACES. If the trace is missing, the generator calibrated to it is used, and the `source` of the result says so.
The definition of a source registers it, in one registry (`Sources`) for each kind of data:

    @generator("uniform", "uniformly random users and servers")
    def uniform(rng: np.random.Generator, users: int = 10, servers: int = 5) -> Snapshot: ...

    @workload_generator("batch", "the same job over and over")
    def batch(rng: np.random.Generator, jobs: int = 100) -> Workload: ...
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar, cast
from urllib.parse import parse_qsl

import numpy as np

from ..base import plugins
from ..base.errors import DataError
from ..base.names import TRUTHS
from ..scheduling.workload import Workload
from . import _job_files
from ._snapshot import Snapshot

Parser = Callable[[str], Any]

#: Parameters of sources that are not options.
_GIVEN = ("rng", "directory")
VARIABLE = "FAIROPT_TRACES"

Made = TypeVar("Made")
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Entry:
    """Registered generator or reader of a trace.

    For a reader, `folder` is the prefix of the name of the folder of its trace, and `stand_in` is the name of the
    generator that replaces a missing trace, or ''.
    """

    name: str
    description: str
    function: Callable[..., Any]
    folder: str = ""
    stand_in: str = ""

    @cached_property
    def options(self) -> Mapping[str, Parser]:
        """Parsers of all options, derived from the signature."""
        return {name: _checked(name, kind) for name, kind in parameters(self.function).items() if name not in _GIVEN}


def parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """Type of each parameter of a function by name; str for parameters without annotation."""
    hints = typing.get_type_hints(function, include_extras=True)
    return {name: hints.get(name, str) for name in inspect.signature(function).parameters}


def _checked(name: str, kind: Any) -> Parser:
    """Parser of an option that applies the checks in its type."""
    read = parser(kind)
    checks = getattr(kind, "__metadata__", ())
    if not checks:
        return read

    def value(text: str) -> Any:
        found = read(text)
        for check in checks if found is not None else ():
            check(found, name)
        return found

    return value


def parser(kind: Any) -> Parser:
    """Parser of texts for a type.

    Raises
    ------
    DataError
        Values of the type have no text form.
    """
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return parser(kind.__origin__)
    if origin is Literal:
        return {value: value for value in parts}.__getitem__
    if type(None) in parts:
        return parser(typing.Union[tuple(part for part in parts if part is not type(None))])  # noqa: UP007
    if kind in _PARSERS:
        return _PARSERS[kind]
    raise DataError(
        f"an option of a source is of type {kind}, which cannot be written as text; it must be int, float, bool, str, "
        "a list of str, int | float, one of them or None, or a Literal"
    )


def _amount(text: str) -> int | float | None:
    if text == "all":
        return None
    return float(text) if "." in text else int(text)


def _flag(text: str) -> bool:
    return TRUTHS[text.lower()]


def _list(text: str) -> list[str]:
    return text.split(",")


#: Parsers by type.
_PARSERS: dict[Any, Parser] = {
    int: int, float: float, str: str, bool: _flag, int | float: _amount,
    list[str]: _list, Sequence[str]: _list, str | Sequence[str]: _list, str | list[str]: _list,
}  # fmt: skip


@dataclass(frozen=True)
class Sources(Generic[Made]):
    """Registry of the readers of traces and the generators of one kind of data.

    The data are objects of a dataclass with a text `source`. The decorators `generator` and `reader` register
    functions.
    """

    what: str
    #: Entries by name and alias.
    entries: dict[str, Entry] = field(default_factory=dict)

    def generator(self, name: str, description: str) -> Callable[[Function], Function]:
        """Return a decorator that registers a function of `rng` and options as the source `name`.

        Raises
        ------
        DataError
            The name is in use or not valid, the function has no parameter `rng`, or the type of an option has no text
            form.

        >>> from fairopt.workloads.sources import Sources
        >>> vectors = Sources("vector")
        >>> @vectors.generator("uniform", "uniformly distributed numbers")
        ... def uniform(rng, count: int = 3):
        ...     return rng.random(count)
        >>> vectors.open("uniform?count=2&seed=1").shape
        (2,)
        """
        return self.reader(name, description, folder="")

    def reader(
        self, name: str, description: str, *, folder: str, stand_in: str = "", alias: str | None = None
    ) -> Callable[[Function], Function]:
        """Return a decorator that registers a function of `directory`, `rng` and options as the trace `name`.

        The name of the trace's folder below the traces root begins with `folder`. If the folder is missing, the
        generator `stand_in` is used, if there is one.

        Raises
        ------
        DataError
            As in `generator`.

        >>> from fairopt.workloads.sources import Sources
        >>> texts = Sources("text")
        >>> @texts.reader("notes", "the path of a trace", folder="notes")
        ... def notes(directory, rng):
        ...     return str(directory)
        >>> texts.open("notes:some/folder")
        'some/folder'
        """

        def register(function: Function) -> Function:
            entry = Entry(name, description, function, folder, stand_in)
            self._check(entry)
            self.entries.update(dict.fromkeys(filter(None, (name, alias)), entry))
            return function

        return register

    def open(self, name: str, traces: str | Path | None = None, rng: np.random.Generator | None = None) -> Made:
        """Open a source by name; see `open_source`."""
        return self.maker(name, traces)(rng)

    def maker(self, name: str, traces: str | Path | None = None) -> Callable[[np.random.Generator | None], Made]:
        """Parse the name once, and return a function that draws from the source with a random generator."""
        entry, options, seed = self._read(name)
        trace, function, why = self.folder(name, traces), entry.function, ""
        if trace is not None:
            options["directory"] = trace
        else:
            function = self._generator_for(entry, options).function
        if trace is None and entry.folder:
            root = traces_root(traces)
            why = f"{VARIABLE} is not set" if root is None else f"no folder {entry.folder} among the traces"
            why = f" (a calibrated generator in place of the trace {entry.name}: {why})"

        def make(rng: np.random.Generator | None) -> Made:
            made = function(rng=_generator(seed, rng), **options)
            return cast("Made", dataclasses.replace(made, source=made.source + why) if why else made)

        return make

    def check(self, name: str, traces: str | Path | None = None, there: bool = False) -> None:
        """Validate a name as `open` does, without reading files; the attribute `where` of an error names the option.

        With `there` the options are also checked against the generator that replaces a missing trace.
        """
        entry, options, seed = self._read(name)
        _generator(seed, None)
        if there and self.folder(name, traces) is None:
            self._generator_for(entry, options)

    def known(self) -> dict[str, str]:
        """Descriptions of all sources with their options by name, readers first."""
        plugins.installed()
        return {
            entry.name: f"{entry.description}; options {', '.join([*entry.options, 'seed'])}"
            for entry in sorted(self.entries.values(), key=lambda entry: not entry.folder)
        }

    def reads(self, name: str) -> Entry | None:
        """Reader of the trace that a name refers to; None for generators and unknown names."""
        entry = self.entries.get(_kind(name))
        return entry if entry is not None and entry.folder else None

    def folder(self, name: str, traces: str | Path | None = None) -> Path | None:
        """Folder of the trace that `open` would read; None if it would use a generator, or for unknown names."""
        if (entry := self.reads(name)) is None:
            return None
        directory = name.partition("?")[0].partition(":")[2]
        return Path(directory) if directory else _trace_folder(traces_root(traces), entry.folder)

    def made_by(self, name: str) -> str:
        """Name of the module of the generator that is used if no trace is read, or of a reader that has none."""
        kind = _kind(name)
        return self.entries[self.entries[kind].stand_in or kind].function.__module__

    def _read(self, name: str) -> tuple[Entry, dict[str, Any], str | None]:
        """Parse a name into entry, options, and the text of the seed."""
        plugins.installed()
        path, _, query = name.partition("?")
        kind, colon, directory = path.partition(":")
        entry, given = self._entry(kind), _pairs(query, name)
        seed = given.pop("seed", None)
        if colon and not entry.folder:
            raise DataError(f"{kind!r} is a generator and takes no directory; leave out {colon + directory!r}")
        options = _options(entry, given)
        if colon and not directory:
            raise DataError(f"{name!r} names no directory after the colon; leave out the colon or name one")
        return entry, options, seed

    def _entry(self, kind: str) -> Entry:
        if kind not in self.entries:
            raise DataError(f"there is no {self.what} {kind!r}; known are {', '.join(self.entries)}")
        return self.entries[kind]

    def _generator_for(self, entry: Entry, options: Mapping[str, Any]) -> Entry:
        """Generator of an entry, or the generator in place of a missing trace, which must accept the options."""
        if not entry.folder:
            return entry
        if not entry.stand_in:
            raise DataError(f"{entry.name} reads a file or folder of yours; name it: {entry.name}:PATH")
        trace, generator = entry.name, self._entry(entry.stand_in)
        if missing := [option for option in options if option not in generator.options]:
            raise DataError(
                f"option {missing[0]} of {trace} needs the trace, and there is none; "
                f"name its folder, {trace}:DIR, or set {VARIABLE}",
                (missing[0],),
            )
        for option in ("users", "servers", "vms", "tasks"):
            if option in options and not isinstance(options[option], int):
                raise DataError(f"option {option} of {trace} must be a whole number where there is no trace", (option,))
        return generator

    def _check(self, entry: Entry) -> None:
        name, old = entry.name, self.entries.get(entry.name)
        plugins.distinct("sources", name, old and old.function, entry.function)
        if not re.fullmatch("[a-z0-9_-]+", name):
            raise DataError(f"a source cannot be called {name!r}: write small letters, digits, - and _")
        if "rng" not in parameters(entry.function):
            raise DataError(
                f"the source {name!r} takes no rng; give its function a parameter rng for the random generator"
            )
        assert entry.options is not None  # evaluation rejects types of options without a parser


def _kind(name: str) -> str:
    """Kind of source: the name without directory and options."""
    return re.split("[:?]", name)[0]


def _options(entry: Entry, given: Mapping[str, str]) -> dict[str, Any]:
    """Convert the texts of options to the types of their parameters."""
    result = {}
    for option, text in given.items():
        if option not in entry.options:
            known = ", ".join([*entry.options, "seed"])
            raise DataError(f"{entry.name} has no option {option!r}; known are {known}", (option,))
        try:
            result[option] = entry.options[option](text)
        except (DataError, ValueError, KeyError) as error:
            kind = parameters(entry.function)[option]
            why = f": {error}" if isinstance(error, DataError) else f"; it must be {_described(kind)}"
            raise DataError(f"option {option} of {entry.name} cannot be {text!r}{why}", (option,)) from None
    return result


def _described(kind: Any) -> str:
    """Values of a type of options, in words."""
    kind = kind.__origin__ if typing.get_origin(kind) is Annotated else kind
    parts = [part for part in typing.get_args(kind) if part is not type(None)]
    if typing.get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, parts))}"
    if {int, float} <= set(parts):
        return "a number, or all"
    words = {int: "a whole number", float: "a number", bool: "true or false"}
    return " or ".join(dict.fromkeys(words.get(part, "names separated by commas") for part in parts or [kind]))


def _pairs(query: str, name: str) -> dict[str, str]:
    """Parse `option=value&option=value`; errors name the source."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise DataError(f"the options of {name!r} must read option=value&option=value") from None
    result = dict(pairs)
    if len(result) < len(pairs):
        raise DataError(f"{name!r} gives an option twice")
    return result


def _generator(seed: str | None, rng: np.random.Generator | None) -> np.random.Generator:
    if seed is None:
        return rng if rng is not None else np.random.default_rng(0)
    if not seed.isdecimal():
        raise DataError(f"seed must be a whole number >= 0; got {seed!r}", ("seed",))
    return np.random.default_rng(int(seed))


def traces_root(traces: str | Path | None = None) -> Path | None:
    """Folder of the traces: the argument, or the environment variable FAIROPT_TRACES; None if neither is set.

    Raises
    ------
    DataError
        The path is not a folder.

    >>> import fairopt as fo
    >>> fo.workloads.traces_root(".").is_dir()
    True
    """
    named = traces if traces is not None else os.environ.get(VARIABLE)
    if not named:
        return None
    root = Path(named)
    if not root.is_dir():
        by = "traces" if traces is not None else f"the environment variable {VARIABLE}"
        raise DataError(f"{by} names {root}, which is not a folder")
    return root


def _trace_folder(root: Path | None, begins: str) -> Path | None:
    """Folder of a trace below the root, or the root itself if its name matches."""
    if root is None:
        return None
    folders = [path for path in sorted(root.iterdir()) if path.is_dir() and path.name.startswith(begins)]
    return folders[0] if folders else root if root.name.startswith(begins) else None


#: Sources of clusters at an instant.
CLUSTERS: Sources[Snapshot] = Sources("source of clusters")
#: Sources of jobs that arrive over time, with servers.
WORKLOADS: Sources[Workload] = Sources("workload")

generator, reader = CLUSTERS.generator, CLUSTERS.reader
workload_generator, workload_reader = WORKLOADS.generator, WORKLOADS.reader


def open_source(name: str, *, traces: str | Path | None = None, rng: np.random.Generator | None = None) -> Snapshot:
    """Open a source of clusters by name.

    Parameters
    ----------
    name : str
        A name of `known()`, optionally with a directory (the trace, a folder above, or a part of it) and options: the
        arguments of the reader or generator, and `seed`.
    traces : str or Path, optional
        Folder of the traces. Default: the environment variable FAIROPT_TRACES.
    rng : Generator, optional
        Random generator. `seed=` in the name takes precedence; without either the seed is 0.

    Returns
    -------
    Snapshot

    Raises
    ------
    DataError
        The name, an option (the message lists the known options) or a value is invalid, an option requires a trace that
        is missing, or the reader fails.

    >>> import fairopt as fo
    >>> fo.open_source("google-like?users=3&servers=5&seed=1").cluster.shape
    (3, 5, 2)
    """
    return CLUSTERS.open(name, traces, rng)


def trace_folder(name: str, traces: str | Path | None = None) -> Path | None:
    """Folder of the trace that `open_source` would read; None if it would use a generator, or for unknown names.

    Parameters
    ----------
    name : str
        Name of a source, as in `open_source`.
    traces : str or Path, optional
        Folder of the traces. Default: the environment variable FAIROPT_TRACES.

    Raises
    ------
    DataError
        `traces` is not a folder.

    >>> import fairopt as fo
    >>> fo.workloads.trace_folder("google-like") is None
    True
    """
    return CLUSTERS.folder(name, traces)


def known() -> dict[str, str]:
    """Descriptions of all sources of clusters, with their options, by name.

    >>> import fairopt as fo
    >>> "google-like" in fo.workloads.known()
    True
    """
    return CLUSTERS.known()


def open_workload(
    name: str | Path, *, traces: str | Path | None = None, rng: np.random.Generator | None = None
) -> Workload:
    """Open a workload, jobs that arrive over time, by name.

    Parameters
    ----------
    name : str or Path
        A source with options, `name[:directory][?option=value&...]`; a folder with `tasks.csv` and `servers.csv`; or a
        file in the Standard Workload Format, `FILE.swf`.
    traces : str or Path, optional
        Folder of the traces. Default: the environment variable FAIROPT_TRACES. A missing trace is replaced by the
        generator calibrated to it, and `source` says so.
    rng : Generator, optional
        Random generator. `seed=` in the name takes precedence; without either the seed is 0.

    Returns
    -------
    Workload

    Raises
    ------
    DataError
        The name or an option is invalid, a file cannot be read (the message has the line), or the reader fails.

    >>> import fairopt as fo
    >>> fo.open_workload("google-day?tasks=50&servers=3&seed=11").servers
    ('server1', 'server2', 'server3')
    """
    text = str(name)
    return _job_files.load(text) if _job_files.is_file(text) else WORKLOADS.open(text, traces, rng)


def known_workloads() -> dict[str, str]:
    """Descriptions of all sources of workloads, with their options, by name.

    >>> import fairopt as fo
    >>> "google-day" in fo.workloads.known_workloads()
    True
    """
    return WORKLOADS.known()
