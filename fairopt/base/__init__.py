"""Infrastructure independent of allocation: errors, names, files, registries, compiled loops, clocks, plug-ins."""
