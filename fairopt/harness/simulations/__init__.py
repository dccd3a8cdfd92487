"""Experiments of policies on workloads over time: their cells beside those of mechanisms on clusters."""
