"""Equilibria of the per-server game for every finite alpha, without playing it."""
