"""Workloads, jobs that arrive over time: traces, calibrated generators, and workload files (docs/simulation.md)."""
