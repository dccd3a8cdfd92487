"""The engine: one system of conditions, eliminated in the order that takes fewer operations."""
