"""Reasons of pending jobs by class, as data.

Source: `src/common/job_state_reason.c` of Slurm 26.05, and the page "Job Reason Codes" of its documentation.
"""

from __future__ import annotations

import re

#: Classes of reasons whose jobs would start if resources were free; other jobs wait for something else.
WANTED = ("room", "turn")

#: Patterns of reasons by class; the first class whose pattern matches counts.
REASONS = {
    "room": "Resources|None|InvalidReason",
    "turn": "Priority|ReqNodeNotAvail|Constraints|SchedDefer",
    "never": "(Assoc|QOS)Max.*Per(Job|Node)(Limit)?|QOSMin.*|QOSNotAllowed|AccountNotAllowed|InvalidAccount|InvalidQOS|"
    "BadConstraints|DependencyNeverSatisfied|DeadLine|MaxMemPerLimit|PartitionNodeLimit|PartitionTimeLimit|"
    "PartitionConfig",
    "hold": "JobHeld.*|JobHoldMaxRequeue|JobLaunchFailure|NonZeroExitCode|RaisedSignal|SystemFailure|TimeLimit|"
    "InactiveLimit|OutOfMemory|BurstBufferOperation|Reservation(Deleted|Invalid)",
    "dependency": "Dependency|BeginTime|Reservation|Cleaning|Prolog|BurstBufferStageIn|FedJobLock",
    "limit": "Assoc.*|QOS.*|Max.*|AccountingPolicy|JobArrayTaskLimit|Licenses|BurstBufferResources|MpiPortsBusy|"
    "NvidiaImexChannels|Partition(Down|Inactive)|NodeDown|FrontEndDown|Power(NotAvail|Reserved)",
}


def reason_class(reason: str) -> str:
    """Class of a reason by `REASONS`; "room" for no reason, "turn" for an unknown one, whose job counts as wanted."""
    first = re.split(r"[,( ]", reason.strip("( "))[0]
    found = (name for name, pattern in REASONS.items() if re.fullmatch(pattern, first, re.IGNORECASE))
    return next(found, "turn" if first else "room")
