"""Engines: from (cluster, criterion, program) to tasks and prices. Only `reference.solvers` calls one of CVXPY."""
