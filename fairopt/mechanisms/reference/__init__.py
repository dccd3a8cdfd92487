"""Mechanisms as declarative CVXPY problems; `solvers` is the only caller of `cp.Problem.solve`."""
