"""The command `fairopt`: parsing of arguments, dispatch to the function of a command, and reporting of errors."""

from __future__ import annotations

import argparse
import atexit
import errno
import gc
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from typing import Any

from ...base import plugins, shipped
from ...base.errors import DataError, FairoptError
from ...base.names import plain
from ._slips import Parser, folder, inches, parse, picture_file, table_file

#: Threshold of the garbage collector, larger than the default since a command creates few cycles.
_GC_THRESHOLD = 100_000


@cache
def _declared() -> dict[str, Any]:
    return dict(shipped.content(__package__, "commands.toml"))


#: Functions that parse arguments, by the names of types in commands.toml.
_KINDS = {
    "int": int,
    "float": float,
    "folder": folder,
    "inches": inches,
    "table": table_file,
    "picture": picture_file,
}


def parser(arguments: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Build the parser; if arguments are given, only with the options of the command that they name.

    For the command `completion` the parser has the options of all commands.
    """
    from ...base.version import __version__

    root = Parser(
        prog="fairopt",
        description="Fair allocation of servers with several resources; every answer carries a certificate.",
    )
    root.add_argument("--version", action="version", version=f"fairopt {__version__}")
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")
    wanted = next((word for word in arguments or () if not word.startswith("-")), None)
    shared = _declared()["shared"]
    for name, said in _declared()["commands"].items():
        made = commands.add_parser(name, help=said["help"], description=said["help"])
        if arguments is not None and wanted not in (name, "completion"):
            continue
        alike = said.get("shared", [])
        every = [*(shared[each] for each in alike), *said.get("options", ()), shared["plugin"]]
        for option in every:
            given = {key: value for key, value in option.items() if key != "flags"}
            given |= {key: _KINDS.get(given[key], given[key]) for key in ("type", "action", "help") if key in given}
            made.add_argument(*option["flags"], **given)
        if "traces" in alike and any(option["flags"] == ["file"] for option in every):
            made.formatter_class, made.epilog = argparse.RawDescriptionHelpFormatter, _declared()["file_help"]
    return root


def _run(options: argparse.Namespace) -> int:
    """Import the module of the command and call its function."""
    module = importlib.import_module(f".{_declared()['commands'][options.command]['module']}", __package__)
    return int(getattr(module, options.command.replace("-", "_"))(options))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; errors are one line on standard error, without a traceback.

    Without `arguments`, the arguments of the process are parsed, and process-wide settings are changed: SIGTERM, by
    which batch systems announce the end of a time limit, then ends a command as Ctrl-C does, with the exit status 143.
    """
    ended = list[int]()

    def terminated(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        ended.append(number)
        raise KeyboardInterrupt

    if arguments is None:  # scanning imported modules for garbage at exit takes a third of the time of a short command
        gc.set_threshold(_GC_THRESHOLD)
        atexit.register(gc.freeze)
        sys.unraisablehook = _unraisable
        signal.signal(signal.SIGTERM, terminated)
    for name in ("stdin", "stdout", "stderr"):  # else the next opened file gets the descriptor of a closed stream
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")  # characters outside the encoding are escaped
    with redirect_stdout(Screen(sys.stdout)), redirect_stderr(Screen(sys.stderr)):
        status = _answered(arguments)
    return 128 + ended[0] if ended else status


class Screen:
    """Output stream that escapes control characters, except tabs and newlines."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream  # the wrapped stream, to which progress bars write directly

    def write(self, text: str) -> int:
        """Write text with control characters escaped, and return the number of characters."""
        return int(self.stream.write(plain(text, "\n\t")))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _answered(arguments: Sequence[str] | None) -> int:
    try:
        given = sys.argv[1:] if arguments is None else list(arguments)
        root = parser(given)
        options = parse(root, given)
        options.parser = root
        for file in options.plugin:
            plugins.load(file)
        status = _run(options)
        sys.stdout.flush()
        return status
    except FairoptError as error:
        return _failed(str(error), 2 if isinstance(error, DataError) else 1)
    except KeyboardInterrupt:
        return _failed("interrupted", 130)
    except BrokenPipeError:  # a reader such as head or less has closed the pipe
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
    """Report errors in finalizers, except errors of compiler objects that Ctrl-C left incomplete."""
    module = str(getattr(found.object, "__module__", ""))
    if not (isinstance(found.exc_value, AttributeError) and module.startswith("llvmlite.")):
        sys.__unraisablehook__(found)


def _silence() -> None:
    """Redirect standard output to the null device, so that Python reports no error when it flushes it at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # the stream has no file descriptor
        return


#: Remedies for errors of the operating system, by names of error codes.
_REMEDIES = {
    "ENOSPC EDQUOT": "free some space, or write elsewhere",
    "EACCES EPERM EROFS": "choose a place that you may write to, or a file that you may read",
    "ENAMETOOLONG": "choose a shorter name",
    "ENOENT": "name a file or folder that exists",
    "ENOTDIR EEXIST": "a file is where a folder is needed; choose another place",
    "EISDIR": "a folder is where a file is needed; choose another name",
}


def _of_system(error: OSError) -> str:
    """Message for an error of the operating system, with its remedy."""
    where, code = error.filename or "the output", errno.errorcode.get(error.errno or 0, "?")
    remedies = [f"; {text}" for codes, text in _REMEDIES.items() if code in codes.split()]
    return f"{where}: {error.strerror or error}{''.join(remedies)}"
