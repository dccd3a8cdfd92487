"""The game as it is written, in CVXPY."""
