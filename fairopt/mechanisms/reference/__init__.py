"""Mechanisms as they are written, in CVXPY. `solvers` is the only caller of `cp.Problem.solve`."""
