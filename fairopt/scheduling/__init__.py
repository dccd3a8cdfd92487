"""Scheduling of indivisible tasks: workloads, policies (one per file), the simulator, and sequential rules."""

from __future__ import annotations

from .dedicated_servers import dedicated
from .discrete_drf import discrete_drf, tasks_of
from .dynamic_drf import dynamic_drf
from .hug import hug
from .schedule import Schedule
from .setup import Thrashing
from .simulator import simulate
from .workload import Workload

__all__ = [
    "Schedule", "Thrashing", "Workload", "dedicated", "discrete_drf", "dynamic_drf", "hug", "simulate", "tasks_of",
]  # fmt: skip
