"""The command simulate: whole tasks on servers over time, under scheduling policies."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from ...base.errors import DataError
from ...base.libraries import pd
from ...harness import report
from ...harness import simulate as simulating
from ...harness.report import figures
from ...model import _validate
from ...workloads import open_workload
from . import _screen
from ._screen import print_json
from ._slips import listed

#: Tables of a schedule that can be exported.
_TABLES = ("jobs", "users", "tasks", "timeline")


def simulate(options: argparse.Namespace) -> int:
    """`fairopt simulate WORKLOAD --policy NAME ...`: one row per policy; exit status 130 after Ctrl-C."""
    names = listed(options.policy) or []
    impossible = "report" if options.report_impossible else "raise"
    jobs = [simulating.Simulate.of(name, options.until, options.every, impossible, None, "short", options.half_life)
            for name in names]  # fmt: skip
    _before(options, names)
    rng = None if options.seed is None else np.random.default_rng(_validate.whole(options.seed, "--seed", 0))
    workload = open_workload(options.workload, traces=options.traces, rng=rng)
    found = {job.what.text: job.run(workload, _screen.shows_progress(options)) for job in jobs}
    status = 130 if any(one.interrupted for one in found.values()) else 0
    rows = []
    for name, one in found.items():
        numbers = simulating.numbers(one)
        use = {f"use_{resource}": value for resource, value in one.utilization.items()}
        del numbers["utilization"]
        rows.append({"policy": name} | numbers | use)
        if options.out:
            report.export(getattr(one, options.table).reset_index(), options.out)
        if options.plot and not isinstance(one, simulating.Alone):
            figures.write(one.plot(), options.plot)
    if options.json:
        print_json({"workload": workload.source or options.workload, "report": workload.report, "policies": rows})
        return status
    _screen.say([f"{workload!r}", *(f"{what}: {value:.4g}" if isinstance(value, float) else f"{what}: {value}"
                                    for what, value in workload.report.items())])  # fmt: skip
    frame = pd.DataFrame(rows)
    shown = frame.drop(columns=[name for name in frame if frame[name].isna().all() or name == "status"])
    print(_screen.table(shown if len(rows) > 1 else shown.T.reset_index(names="").rename(columns={0: "value"})))
    _screen.written(options)
    return status


def _before(options: argparse.Namespace, names: Sequence[str]) -> None:
    """Validate the requested outputs before any simulation."""
    if not names:
        raise DataError("--policy names no policy; fairopt policies lists them")
    if (options.out or options.plot) and len(names) != 1:
        raise DataError(f"--out and --plot apply to one policy, and the number of policies is {len(names)}; name one")
    if options.out and options.table == "tasks" and names[0].startswith(simulating.FLUID):
        raise DataError(f"{names[0]} has no table of tasks, as it divides them; choose jobs, users or timeline")
    if options.plot and names[0].startswith(simulating.DEDICATED):
        raise DataError(f"{names[0]} simulates each user alone, without a common picture; leave out --plot")
