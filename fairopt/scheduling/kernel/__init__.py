"""The compiled engine's loops: they know arrays only."""
