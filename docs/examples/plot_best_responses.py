"""
Servers that respond in turn
============================

The distributed game, round by round: residual, exploitability and utilization.
"""

import fairopt as fo

fo.best_response(fo.papers.instance("pf-fig1-variant"), 3).trace.plot()
