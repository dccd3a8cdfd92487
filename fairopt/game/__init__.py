"""The per-server game: one server's problem, tilted programs, best responses."""
