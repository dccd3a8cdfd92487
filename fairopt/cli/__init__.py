"""The command `fairopt`: parse, call, print."""

from __future__ import annotations

import argparse
import atexit
import errno
import gc
import importlib
import io
import os
import sys
from collections.abc import Sequence

from .. import _plugins
from ..errors import DataError, FairoptError
from ._slips import Parser, parse

#: What every command does, by the module that declares its options and has its function.
_COMMANDS = {
    "commands": {
        "solve": "share one cluster with one mechanism",
        "check": "check a saved allocation, whoever made it; exit 1 if it misses the tolerance",
        "compare": "share one cluster with several mechanisms, one row each",
        "path": "follow a mechanism as its parameter alpha changes, one row per alpha",
        "claims": "check every number and claim of the source papers; exit 1 if one fails",
        "completion": "print a script for completion in a shell",
        "dynamic-drf": "share one pool with users who arrive one after the other, by Dynamic DRF, one row per arrival",
        "hug": "share links among tenants with correlated, elastic demands, by HUG, one row per tenant",
    },
    "lists": {
        "mechanisms": "list the mechanisms: name, parameters, properties, source",
        "instances": "list the instances of the papers, each a FILE as paper:NAME",
        "sources": "list traces and generators, each a FILE as NAME?option=value",
        "policies": "list the schedulers of whole tasks",
        "workloads": "list sources of jobs over time, each a WORKLOAD as NAME?option=value",
        "docs": "open the documentation: a page as text, the list of pages, or the site that `make docs` built",
        "schema": "print the JSON Schema of cluster or experiment files, by which editors complete and check them",
        "warmup": "compile the loops that answers would wait for, once; what has changed since is compiled again",
        "bench": "write a frozen set of instances with certified answers, as JSON and MatrixMarket, for other solvers",
    },
    "fairness": {
        "properties": "search what properties mechanisms violate, report on a cluster, or replay a counterexample",
    },
    "explore": {
        "explore": "look at a cluster in the browser: alpha on a slider, tables to edit; or write a page to share",
        "report": "how the users of a cluster stand: what they run, want and are entitled to, what holds them, what if",
    },
    "simulations": {
        "simulate": "run jobs of whole tasks on servers over time, under one policy or several, one row each",
    },
    "sweeps": {
        "sweep": "compute the cells of experiments that the store does not have",
        "results": "list, filter and export what is stored",
    },
    "figures": {
        "tables": "write the tables of experiments from stored results, as CSV, Markdown and LaTeX; exit 1 if one "
        "lacks cells, 2 if there is no store",
        "figures": "draw the figures from stored results, as PDF and PNG; exit 1 if one lacks cells, 2 if there is no "
        "store",
    },
    "new": {
        "new": "write an experiment or a figure to edit: a copy of one that there is, or a small one of a new name",
        "notebooks": "copy the notebooks into a folder",
    },
    "reproduce": {
        "reproduce": "make a paper's tables, figures and claims anew, in a folder with a manifest",
    },
}


#: New objects before Python looks for garbage.
_GARBAGE = 100_000


def parser(arguments: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The command line; where its arguments are known, with the options of their command only."""
    from .._version import __version__

    root = Parser(
        prog="fairopt",
        description="Fair allocation of servers with several resources; every answer carries a certificate.",
    )
    root.add_argument("--version", action="version", version=f"fairopt {__version__}")
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")
    wanted = next((word for word in arguments or () if not word.startswith("-")), None)
    for module, texts in _COMMANDS.items():
        for name, text in texts.items():
            commands.add_parser(name, help=text, description=text)
        if arguments is None or wanted in ("completion", *texts):
            importlib.import_module(f".{module}", __package__).add(commands.choices)
    for made in commands.choices.values():
        made.add_argument(
            "--plugin",
            action="append",
            default=[],
            metavar="FILE.py",
            help="mechanisms, policies, measures, ... of yours",
        )
    return root


def _run(options: argparse.Namespace) -> int:
    """Call the function of the command's name."""
    home = next(module for module, texts in _COMMANDS.items() if options.command in texts)
    module = importlib.import_module(f".{home}", __package__)
    return int(getattr(module, options.command.replace("-", "_"))(options))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status. Errors are one line on standard error, without a traceback.

    Without arguments it is that of the process, which is then the command's own.
    """
    if arguments is None:  # what is imported is no garbage, at the end neither: looking through it takes a third
        gc.set_threshold(_GARBAGE)
        atexit.register(gc.freeze)
        sys.unraisablehook = _unraisable
    for name in ("stdin", "stdout", "stderr"):  # closed: whatever is opened next would have its number
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")  # an encoding that lacks a character is no error
    try:
        given = sys.argv[1:] if arguments is None else list(arguments)
        root = parser(given)
        options = parse(root, given)
        options.parser = root
        for file in options.plugin:
            _plugins.load(file)
        status = _run(options)
        sys.stdout.flush()
        return status
    except FairoptError as error:
        return _failed(str(error), 2 if isinstance(error, DataError) else 1)
    except KeyboardInterrupt:
        return _failed("interrupted", 130)
    except BrokenPipeError:  # whoever read our output (head, less) has enough
        _silence()
        return 0
    except OSError as error:
        _silence()
        return _failed(_of_system(error), 2)
    except MemoryError:
        return _failed("there is not enough memory for this; take fewer users or servers", 2)


def _failed(text: str, status: int) -> int:
    print(f"fairopt: {' '.join(text.split())}", file=sys.stderr)
    return status


def _unraisable(found: sys.UnraisableHookArgs) -> None:
    """Report errors in finalizers, but those of the compiler's objects that Ctrl-C left half made."""
    module = str(getattr(found.object, "__module__", ""))
    if not (isinstance(found.exc_value, AttributeError) and module.startswith("llvmlite.")):
        sys.__unraisablehook__(found)


def _silence() -> None:
    """Keep Python from complaining at its end about what could not be printed."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # no real stream
        return


_REMEDIES = {
    errno.ENOSPC: "free some space, or write elsewhere",
    errno.EDQUOT: "free some space, or write elsewhere",
    errno.EACCES: "choose a place that you may write to, or a file that you may read",
    errno.EPERM: "choose a place that you may write to",
    errno.EROFS: "choose a place that you may write to",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOENT: "name a file or folder that exists",
    errno.ENOTDIR: "a file is where a folder is needed; choose another place",
    errno.EEXIST: "a file is where a folder is needed; choose another place",
    errno.EISDIR: "a folder is where a file is needed; choose another name",
}


def _of_system(error: OSError) -> str:
    """Say what the system refused, and what to do about it."""
    where = "the output" if error.filename is None else str(error.filename)
    remedy = _REMEDIES.get(error.errno or 0)
    return f"{where}: {error.strerror or error}" + (f"; {remedy}" if remedy else "")
