"""What every room uses and nothing of fairness: errors, names, files, registries, loops, clock, plug-ins."""
