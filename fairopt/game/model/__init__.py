"""The equations of an equilibrium, on the arrays of a polytope."""
