"""
What one more unit brings
=========================

How everybody's tasks move with every capacity, by the implicit function theorem.
"""

import fairopt as fo

figure = fo.AlphaPFVDS(3).solve(fo.papers.instance("pf-fig1-variant")).sensitivity().plot()
