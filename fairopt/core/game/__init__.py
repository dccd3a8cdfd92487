"""The game per server: responses, equilibria, their limit PS-DSF, and curves of alpha."""
