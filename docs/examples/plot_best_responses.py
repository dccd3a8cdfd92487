"""
Servers that respond in turn
============================

The distributed game, round by round: residual and exploitability.
"""

import fairopt as fo

cluster = fo.open_source("lognormal?users=20&servers=10&seed=1").cluster
figure = fo.best_response(cluster, 3, max_rounds=300).trace.plot()
