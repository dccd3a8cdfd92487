"""Engines: from (cluster, criterion, formulation) to tasks and prices. Only `convex` calls a solver."""
