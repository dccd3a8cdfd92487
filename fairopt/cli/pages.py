"""`fairopt docs` and `fairopt schema`: the documentation in a browser, and JSON Schemas for editors."""

from __future__ import annotations

import argparse
import webbrowser
from collections.abc import Mapping

from .. import _shipped
from ..errors import DataError
from ..report.schemas import SCHEMAS
from ._json import print_json


def add(commands: Mapping[str, argparse.ArgumentParser]) -> None:
    """The options of the two commands."""
    commands["docs"].add_argument(
        "--where", action="store_true", help="print where the start page is, and open nothing"
    )
    commands["schema"].add_argument("kind", choices=list(SCHEMAS), help="the kind of file")


def docs(options: argparse.Namespace) -> int:
    """`fairopt docs`; a `DataError` says how to build what is not there."""
    page = _shipped.folder("build").resolve() / "site" / "index.html"
    if not page.is_file():
        raise DataError(
            f"there is no {page}; run `make docs` in a checkout of fairopt, which takes some minutes the first time. "
            "The pages are plain text as well, in its folder docs/"
        )
    if options.where or not webbrowser.open(page.as_uri()):
        print(page)
    return 0


def schema(options: argparse.Namespace) -> int:
    """`fairopt schema`."""
    print_json(SCHEMAS[options.kind]())
    return 0
