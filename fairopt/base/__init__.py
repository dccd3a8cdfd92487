"""Shared infrastructure without any fairness: errors, names, files, registries, compiled loops, clock, plug-ins."""
