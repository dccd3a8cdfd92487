"""
Who uses what
=============

The used part of every capacity, stacked by user.
"""

import fairopt as fo

figure = fo.PSDSF().solve(fo.papers.instance("pf-fig1-variant")).plot()
