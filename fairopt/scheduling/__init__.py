"""Whole tasks on servers: workloads, policies one per file, the simulator, and discrete DRF on one pool."""

from __future__ import annotations

from .discrete_drf import discrete_drf, tasks_of
from .schedule import Schedule
from .simulate import simulate
from .workload import Workload

__all__ = ["Schedule", "Workload", "discrete_drf", "simulate", "tasks_of"]
