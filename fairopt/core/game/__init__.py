"""The per-server game: best responses, equilibria, their limit PS-DSF, and curves of equilibria in alpha."""
