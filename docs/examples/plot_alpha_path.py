"""
Use against equality, along alpha
=================================

alphaPF-VDS and alpha-fairness on the same cluster, from alpha = 0.1 to infinity.
"""

import fairopt as fo

cluster = fo.open_source("bitbrains-like?vms=30&servers=6&seed=1").cluster
figure = fo.alpha_path(cluster).draw(fo.alpha_path(cluster, mechanism="alpha-fair"))
