"""How answers move with the data: derivatives of tasks by the implicit function theorem, on arrays.

It knows clusters, criteria, tasks and log prices, no engine and no measure; `fairopt.result.sensitivity` makes frames.
"""
