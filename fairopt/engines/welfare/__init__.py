"""Concave welfare, alpha-fair among it, by the core's interior point, and where nothing is scarce."""
