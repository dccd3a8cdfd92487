"""The last digits of an alpha-fair optimum or equilibrium, for every engine."""
