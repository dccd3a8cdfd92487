"""Whole tasks on servers: workloads, policies one per file, the simulator, and discrete DRF on one pool."""

from __future__ import annotations

from .dedicated import dedicated
from .discrete_drf import discrete_drf, tasks_of
from .schedule import Schedule
from .simulate import simulate
from .thrashing import Thrashing
from .workload import Workload

__all__ = ["Schedule", "Thrashing", "Workload", "dedicated", "discrete_drf", "simulate", "tasks_of"]
