"""Exact best responses of servers, rounds of them, and their acceleration: compiled."""
