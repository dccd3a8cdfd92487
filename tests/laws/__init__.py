"""Laws of every registered mechanism. Whoever adds a mechanism adds nothing here: the registry is read.

`pytest tests/laws -k tsf` checks the mechanisms with tsf in their names, each in seconds.
"""
