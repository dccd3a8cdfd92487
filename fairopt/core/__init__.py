"""The engine: one system of conditions, for one problem or a stack, eliminated in the cheaper order."""
