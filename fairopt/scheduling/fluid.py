"""The fluid model: a mechanism re-solved over time, tasks served at the rates that it allocates (PF section 6)."""

from __future__ import annotations

import math

from .. import mechanisms
from ..errors import DataError
from ..mechanisms import Mechanism
from .fluid_run import FluidRun, choice
from .fluid_schedule import FluidSchedule
from .workload import Workload


def fluid(
    workload: Workload,
    mechanism: str | Mechanism,
    *,
    every: float = 300.0,
    events: bool = False,
    by: str = "job",
    limits: bool = False,
    until: float | None = None,
    tol: float | None = None,
    throw: bool = True,
    warm: bool = True,
    idle: bool = False,
    progress: bool = False,
) -> FluidSchedule:
    """Serve a workload at the rates of a mechanism: the semi-dynamic model of PF section 6.

        x = the mechanism's tasks of those present, solved anew at multiples of `every` seconds if anything has changed
        dW_g/dt = -x_n k_g / sum_h k_h      W_g: work of group g of player n, k_g its tasks, h its groups present

    At first `W_g` is the sum of the durations of the group's tasks: as much as they need at one second per second. A
    group ends when no work is left. A player, all of whose tasks run at one speed, asks for the mean demand of its
    unfinished groups, weighted by their tasks, and leaves with the last of them. What is released before the next
    multiple is reallocated among those who remain, as PF's, by a solve for them; those who arrive wait for that.

    PF's users arrive with one demand and an amount of work, and leave once it is done: that is a job here (`by="job"`,
    with the weight of its user). Its normalised demands, `d_n / max_r d_nr` with `q_n = 300 max_r d_nr` tasks of these
    to run for a second, are in our units tasks of 300 seconds: both give the same resources, and `q_n / x_n` seconds.

    Parameters
    ----------
    workload : whose jobs, and when servers come and go
    mechanism : its name, such as `"alphapf-vds(alpha=3)"`, or itself
    every : seconds from solve to solve, at multiples of this; where servers come or go is always solved anew
    events : solve whenever anybody arrives or ends as well
    by : who a user of the mechanism is: every `"job"`, or a `"user"` with all its jobs there
    limits : may nobody run more tasks than it has in unfinished groups, so that no task runs faster than on its own?
        PF has no such limit
    until : seconds; default: until all work is done, or nobody who is left can run anything
    tol, throw : as `Mechanism.solve`: a solve that misses its tolerance is an error, or flagged in the timeline
    warm : may engines start from the solve before
    idle : does what is released stay idle until the next multiple of `every`?
    progress : show a bar of the work done. Ctrl-C ends the run with what has happened until then; the schedule says so
        (`interrupted`), and `schedule.run.run()` goes on.

    Raises
    ------
    DataError
        The mechanism is not defined on this workload, or an option is none; the message says what to change.
    SolverError, NotConverged, CertificateError
        As `Mechanism.solve`.

    Source: Khamse-Ashari et al., arXiv 1712.10114, section 6 ("semi-dynamic"); what it leaves open: docs/fluid.md.
    """
    if not isinstance(workload, Workload):
        raise DataError(f"fluid takes a Workload; got a {type(workload).__name__} (Workload.from_frames makes one)")
    if (workload.after >= 0).any():
        raise DataError("here jobs come at given times, and some of these come after others (`after`): simulate them")
    if until is not None and math.isnan(until):
        raise DataError("until is nan; give seconds, or leave it out")
    run = FluidRun(
        workload, mechanisms.one(mechanism), float(every), events, choice(by), limits, tol, throw, warm, idle
    )
    return FluidSchedule(run.run(math.inf if until is None else float(until), progress))
