"""The command `fairopt`: parse, call, print."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from ..errors import DataError, FairoptError

_FILE_HELP = """\
FILE is one of
  a cluster file         cluster.toml, cluster.json (docs/cluster-file.md)
  paper:NAME             an instance of a source paper, such as paper:drf-4.1 (an unknown NAME lists them)
  a trace or generator   bitbrains:DIR, google:DIR, alibaba:DIR, bitbrains-like, google-like, alibaba-like, with
                         options: 'bitbrains?vms=50&seed=3'. Without DIR, a trace is looked for below --traces or
                         FAIROPT_TRACES.

mechanisms are names (`fairopt tables` lists them), with parameters in brackets: 'alphapf-vds(alpha=3)'.
"""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    from .._version import __version__

    root = argparse.ArgumentParser(
        prog="fairopt",
        description="Fair allocation of servers with several resources; every answer carries a certificate.",
    )
    root.add_argument("--version", action="version", version=f"fairopt {__version__}")
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")

    solve = _command(commands, "solve", "share one cluster with one mechanism", file=True)
    solve.add_argument("--mechanism", "-m", default="drfh", help="default: %(default)s")
    _solving(solve)
    solve.add_argument(
        "--save", metavar="FILE", help="write the allocation there, to be checked (docs/allocation-file.md)"
    )

    check = _command(commands, "check", "check a saved allocation, whoever made it; exit 1 if it misses the tolerance")
    check.add_argument("file", metavar="FILE", help="an allocation file (docs/allocation-file.md)")
    check.add_argument("--tol", type=float, help="what feasibility and error must reach; default: the file's")

    compare = _command(commands, "compare", "share one cluster with several mechanisms, one row each", file=True)
    compare.add_argument("--mechanisms", "-m", nargs="+", metavar="NAME", help="default: all of them")
    _solving(compare)

    claims = _command(commands, "claims", "check every number and claim of the source papers; exit 1 if one fails")
    claims.add_argument("--paper", help="only this paper's, such as DRF or PF")
    claims.add_argument("--item", type=int, help="only this item of the catalogue")
    claims.add_argument("--out", metavar="DIR", help="write the table there as well, as CSV, Markdown and LaTeX")

    from . import figures, sweeps

    sweeps.add(commands)
    figures.add(commands)
    return root


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
    """Run one command; the exit status. Errors are one line on standard error, without a traceback."""
    options = parser().parse_args(arguments)
    from . import commands

    try:
        return int(getattr(commands, options.command)(options))
    except FairoptError as error:
        text = " ".join(str(error).split())
        print(f"fairopt: {text}", file=sys.stderr)
        return 2 if isinstance(error, DataError) else 1
    except KeyboardInterrupt:
        print("fairopt: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read our output (head, less) has enough; keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
