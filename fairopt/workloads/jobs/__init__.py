"""Jobs that arrive over time: traces, generators calibrated to them, and files of one's own (docs/simulation.md)."""
