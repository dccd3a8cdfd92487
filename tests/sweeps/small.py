"""The experiment of the sweep tests, and how to start the command as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
from processes import ROOT

from fairopt import harness

EXPERIMENT = """
title = "A small one"
repetitions = 3
seed = 7

[clusters]
paper = "paper:pf-fig1-variant"

[clusters.drawn]
source = "lognormal"
users = [4, 6]
servers = 3

[[grid]]
mechanisms = ["drfh", "tsf", "alphapf-vds", "ps-dsf"]
alphas = [1, 3]
measures = ["utilization", "classes", "tasks", "price_of_fairness"]

[[grid]]
mechanisms = ["alphapf-vds"]
alphas = [3]
engines = "best-response"
orders = ["random", "asynchronous"]
max_rounds = 60
"""
#: 7 clusters with five mechanisms, 6 drawn ones with two games, and the paper's with two in three draws each.
CELLS = 7 * 5 + 6 * 2 + 3 * 2


def sweep(file: str | Path, store: Any, **more: Any) -> pd.DataFrame:
    """The rows of an experiment, in silence."""
    return harness.sweep(file, store=store, progress=False, **more)


def cells_of(file: Path) -> list[harness.Cell]:
    return harness.cells_of(harness.load(file))


def load(path: Path, text: str, smoke: bool = False) -> harness.Experiment:
    """The experiment of this text, written into the file."""
    path.write_text(text)
    return harness.load(path, smoke)


#: Ctrl-C counts, even where the tests themselves run in the background and do not hear it.
START = (
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "runpy.run_module('fairopt.app.cli', run_name='__main__', alter_sys=True)"
)


ENV = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


@contextmanager
def command(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """`fairopt ...` in a session of its own, as a terminal would start it, which ends with the block."""
    words, pipe = [sys.executable, "-c", START, *map(str, arguments)], subprocess.PIPE
    process = subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, start_new_session=True, env=ENV)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=300)


def keys_stored(store: Path) -> list[str]:
    """The key of every row, read without the store's own code; none as long as there is no file."""
    with (
        suppress(sqlite3.OperationalError),
        closing(sqlite3.connect(f"file:{store}/cells.sqlite?mode=rw", uri=True)) as base,
    ):
        return [key for (key,) in base.execute("SELECT key FROM cells")]
    return []


def until(condition: Callable[[], bool], seconds: float = 600.0) -> None:
    """Wait for something to happen."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@contextmanager
def dask_cluster(folder: Path, workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A real scheduler and workers, each a process of its own, on loopback: the address, and they in this order."""
    there, running = folder / "scheduler.json", list[subprocess.Popen[bytes]]()
    with ExitStack() as stack:

        def start(module: str, *arguments: str) -> None:
            log = stack.enter_context(open(folder / f"{len(running)}.log", "wb"))
            words = [
                sys.executable,
                "-m",
                f"distributed.cli.{module}",
                "--no-dashboard",
                "--host",
                "127.0.0.1",
                *arguments,
            ]
            env = ENV | {"DASK_TEMPORARY_DIRECTORY": str(folder)}
            running.append(subprocess.Popen(words, stdout=log, stderr=log, env=env, cwd=folder))
            stack.callback(running[-1].wait, timeout=300)
            stack.callback(running[-1].kill)  # told to end, a worker may wait minutes for a scheduler that has ended

        def address() -> str:
            with suppress(OSError, ValueError):
                return str(json.loads(there.read_text(encoding="utf-8"))["address"])
            return ""

        # The scheduler chooses its port, before workers choose theirs: one that was free may be a worker's soon.
        start("dask_scheduler", "--port", "0", "--scheduler-file", str(there))
        until(lambda: bool(address()))
        for _ in range(workers):
            start("dask_worker", address(), "--nthreads", "1", "--no-nanny")
        yield address(), running
