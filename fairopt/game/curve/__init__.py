"""The curve of equilibria through alpha = 1, and which equilibrium it makes the answer."""
