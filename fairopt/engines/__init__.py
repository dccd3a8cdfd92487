"""Engines: from (cluster, criterion, formulation) to tasks and prices. Only `reference.solvers` calls one of CVXPY."""
