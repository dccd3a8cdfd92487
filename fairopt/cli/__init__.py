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

_FILE_HELP = """\
FILE is one of
  a cluster file         cluster.toml, cluster.json, cluster.csv (docs/cluster-file.md)
  paper:NAME             an instance of a source paper, such as paper:drf-4.1 (`fairopt instances` lists them)
  a trace or generator   bitbrains:DIR, google:DIR, alibaba:DIR, bitbrains-like, google-like, alibaba-like, with
                         options: 'bitbrains?vms=50&seed=3' (`fairopt sources` lists them). Without DIR, a trace is
                         looked for below --traces or FAIROPT_TRACES.
  kubernetes:FILE        what `kubectl get nodes,pods,namespaces -A -o json` prints (docs/workloads.md)
  slurm:DIR              what scontrol, squeue and sshare print as JSON

mechanisms are names (`fairopt mechanisms` lists them), with parameters in brackets: 'alphapf-vds(alpha=3)'; several
stand apart by spaces or commas.
"""


#: Commands whose options stand beside what they do, by module: what they print at most is this text, until asked.
_ELSEWHERE = {
    "lists": {
        "mechanisms": "list the mechanisms: name, parameters, properties, source",
        "instances": "list the instances of the papers, each a FILE as paper:NAME",
        "sources": "list traces and generators, each a FILE as NAME?option=value",
        "policies": "list the schedulers of whole tasks",
        "workloads": "list sources of jobs over time, each a WORKLOAD as NAME?option=value",
    },
    "fairness": {
        "properties": "search what properties mechanisms violate, report on a cluster, or replay a counterexample",
    },
    "explore": {
        "explore": "look at a cluster in the browser: alpha on a slider, tables to edit; or write a page to share",
    },
    "cluster_report": {
        "report": "how the users of a cluster stand: what they run, want and are entitled to, what holds them, what if",
    },
    "pools": {
        "dynamic-drf": "share one pool with users who arrive one after the other, by Dynamic DRF, one row per arrival",
        "hug": "share links among tenants with correlated, elastic demands, by HUG, one row per tenant",
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
    "bench": {
        "bench": "write a frozen set of instances with certified answers, as JSON and MatrixMarket, for other solvers",
    },
    "pages": {
        "docs": "open the documentation that `make docs` built, or say how to build it",
        "schema": "print the JSON Schema of cluster or experiment files, by which editors complete and check them",
    },
    "warm": {"warmup": "compile the loops that answers would wait for, once; what has changed since is compiled again"},
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
    commands: argparse._SubParsersAction[argparse.ArgumentParser]
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")  # type: ignore[assignment]

    solve = _command(commands, "solve", "share one cluster with one mechanism", file=True)
    solve.add_argument("--mechanism", "-m", default="drfh", help="default: %(default)s")
    _solving(solve)
    solve.add_argument(
        "--save", metavar="FILE", help="write the allocation there, to be checked (docs/allocation-file.md)"
    )

    _out(solve, "the table of users")

    check = _command(commands, "check", "check a saved allocation, whoever made it; exit 1 if it misses the tolerance")
    check.add_argument("file", metavar="FILE", help="an allocation file (docs/allocation-file.md)")
    check.add_argument("--tol", type=float, help="what feasibility and error must reach; default: the file's")

    compare = _command(commands, "compare", "share one cluster with several mechanisms, one row each", file=True)
    compare.add_argument("--mechanisms", "-m", nargs="+", metavar="NAME", help="default: all of them")
    _solving(compare)
    _out(compare, "the comparison")

    path = _command(commands, "path", "follow a mechanism as its parameter alpha changes, one row per alpha", file=True)
    path.add_argument(
        "--mechanism", "-m", default="alphapf-vds", help="one with a parameter alpha; default: %(default)s"
    )
    path.add_argument(
        "--alphas", nargs="+", metavar="ALPHA", help="numbers, inf, LOW:HIGH:COUNT; default: 0.1:64:39 and inf"
    )
    path.add_argument("--tol", type=float, help="what certificates must reach; default: 1e-6")
    path.add_argument(
        "--plot", nargs="?", const="path.png", metavar="FILE", help="draw into .png, .pdf or .svg; default: %(const)s"
    )
    _out(path, "the table")

    claims = _command(commands, "claims", "check every number and claim of the source papers; exit 1 if one fails")
    claims.add_argument("--paper", help="only this paper's, such as DRF or PF")
    claims.add_argument("--item", type=int, help="only this item of the catalogue")
    claims.add_argument("--out", metavar="DIR", help="write the table there as well, as CSV, Markdown and LaTeX")

    shell = commands.add_parser("completion", help="print a script for completion in a shell")
    shell.add_argument("shell", choices=["bash", "zsh", "tcsh"], help='eval "$(fairopt completion bash)"')

    wanted = next((word for word in arguments or () if not word.startswith("-")), None)
    for module, texts in _ELSEWHERE.items():
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
    homes = {"path": "alpha_path", "completion": "completion"} | {
        name: module for module, texts in _ELSEWHERE.items() for name in texts
    }
    module = importlib.import_module(f".{homes.get(options.command, 'commands')}", __package__)
    return int(getattr(module, options.command.replace("-", "_"))(options))


def _out(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument("--out", metavar="FILE", help=f"write {what} as .csv, .json, .md, .tex or .parquet as well")


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str, file: bool = False
) -> argparse.ArgumentParser:
    made = commands.add_parser(
        name,
        help=text,
        description=text,
        epilog=_FILE_HELP if file else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if file:
        made.add_argument("file", metavar="FILE", help="see below")
        made.add_argument("--traces", metavar="DIR", help="folder of the real traces; default: FAIROPT_TRACES")
    made.add_argument("--json", action="store_true", help="print JSON instead of tables")
    return made


def _solving(command: argparse.ArgumentParser) -> None:
    command.add_argument("--tol", type=float, help="what certificates must reach; default: 1e-6, games 1e-4")
    command.add_argument("--solver", help="CLARABEL, HIGHS or SCS; default: what fits")


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
    """What Python says of errors in finalizers, but those of the compiler's objects that Ctrl-C left half made."""
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
    """What the system refused, and what to do about it."""
    where = "the output" if error.filename is None else str(error.filename)
    remedy = _REMEDIES.get(error.errno or 0)
    return f"{where}: {error.strerror or error}" + (f"; {remedy}" if remedy else "")
