"""One cluster under many mechanisms or alphas, and inverse problems: alphas and weights from what is wanted or seen."""
