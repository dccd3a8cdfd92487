"""
Who gets what, along alpha
==========================

Tasks of the users with most of them under alphaPF-VDS, and the mean of the others.
"""

import fairopt as fo

cluster = fo.open_source("bitbrains-like?vms=30&servers=6&seed=1").cluster
figure = fo.alpha_path(cluster).draw("user_tasks")
