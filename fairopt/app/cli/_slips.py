"""Parsing of arguments, with suggestions for misspelt commands and options."""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from ...base.errors import DataError
from ...base.names import items, meant


class Parser(argparse.ArgumentParser):
    """Argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        text = " ".join(message.split())
        if text.endswith("are required: FILE") and any(action.nargs == "+" for action in self._actions):
            text += " (after a list of names FILE is read as one of them: write FILE first, or --mechanisms a,b)"
        self.exit(2, f"fairopt: {text}{self._command(text)}; {self.prog} --help tells more\n")

    def _command(self, message: str) -> str:
        found = re.match(r"argument COMMAND: invalid choice: '([^']*)'", message)
        if found is None:
            return ""
        known = re.findall(r"[a-z][\w-]+", message.partition("choose from")[2])
        return meant(found[1], known, 0.5)


def inches(text: str) -> float:
    """Parse the width of a figure or table, from 1 to 40 inches."""
    width = float(text)
    if not 1 <= width <= 40:
        raise argparse.ArgumentTypeError(f"it must be from 1 to 40 inches; got {text}")
    return width


def table_file(text: str) -> Path:
    """Parse the path of a table; an unknown format is rejected before any computation."""
    from ...harness.report import exportable

    return _checked(text, exportable)


def folder(text: str) -> str:
    """Parse the path of a folder; the name of a table or picture is rejected, as several files are written there."""
    if Path(text).suffix in (".csv", ".parquet", ".json", ".md", ".tex", ".pdf", ".png", ".svg"):
        raise argparse.ArgumentTypeError(f"{text} is a file; name a folder, in which several are written")
    return text


def picture_file(text: str) -> Path:
    """Parse the path of a figure; an unknown format is rejected before any computation."""
    from ...harness.report.figures import drawable

    return _checked(text, drawable)


def _checked(text: str, check: Callable[[Path], object]) -> Path:
    try:
        check(Path(text))
    except DataError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return Path(text)


def parse(parser: argparse.ArgumentParser, given: Sequence[str]) -> argparse.Namespace:
    """Parse arguments; an unknown option ends the program with a suggestion."""
    options, unknown = parser.parse_known_args(given)
    if unknown:
        sub = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        made = sub.choices[options.command]
        made.error(f"unrecognized arguments: {' '.join(unknown)}{_hint(made, given, unknown[0])}")
    return options


def listed(values: Sequence[str] | None) -> list[str] | None:
    """Split each of the values at commas outside of brackets, and return all parts; None without values."""
    if values is None:
        return None
    return [item for value in values for item in items(value)]


def _hint(parser: argparse.ArgumentParser, given: Sequence[str], name: str) -> str:
    """Suggest an option in place of an unknown option, which may be a parameter of a mechanism; '' if none is alike."""
    from ... import mechanisms

    name, _, value = name.partition("=")
    if not name.startswith("--"):
        return ""
    known = [option for option in parser._option_string_actions if option.startswith("--")]
    parameter = name.removeprefix("--").replace("-", "_")
    having = (kind for kind in ("alphapf-vds", *mechanisms.names())
              if parameter in (field.name for field in dataclasses.fields(mechanisms.REGISTRY[kind])))  # fmt: skip
    option = next((one for one in known if one.startswith("--mechanism")), "")
    if option and (kind := next(having, None)):
        value = value or next(iter(given[given.index(name) + 1 :]), "...")
        return f"; did you mean {option} '{kind}({parameter}={value})'?"
    longer = [option for option in known if name.startswith(option)]
    return meant(name, longer or known, 0.5)
