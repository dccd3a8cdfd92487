"""Studies: comparisons of mechanisms and alphas, and inverse problems for alphas and weights."""
