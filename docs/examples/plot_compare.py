"""
Mechanisms side by side
=======================

A row for every mechanism, a panel for every measure. Mechanisms of one pool are given the pool of all servers.
"""

import fairopt as fo

cluster = fo.papers.instance("pf-fig1-variant")
figure = fo.plot.compare(fo.compare(cluster, ["drfh", "tsf", "ps-dsf", "alphapf-vds(alpha=1)", "ceei", "utilitarian"]))
