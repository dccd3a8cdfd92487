"""Data of allocation problems: clusters, criteria and feasible sets, independent of how they are solved."""
