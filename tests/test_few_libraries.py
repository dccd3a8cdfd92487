"""Small clusters need NumPy, SciPy and pandas only, as in a browser: every other library is blocked."""

from __future__ import annotations

from processes import python

BLOCKED = """
import importlib.metadata, sys
NEEDED = {"numpy", "scipy", "pandas", "dateutil", "pytz", "tzdata", "six", "fairopt"}
OTHERS = {
    top for top, names in importlib.metadata.packages_distributions().items()
    if top not in NEEDED and not {name.lower() for name in names} & {"python-dateutil", *NEEDED}
}
assert {"numba", "cvxpy", "clarabel", "scs", "highspy", "matplotlib", "tqdm"} & OTHERS

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in OTHERS:
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

sys.meta_path.insert(0, Blocked())
"""

SMALL = """
import fairopt as fo
pool = fo.Cluster([[9, 18]], [[1, 4], [3, 1]])
servers = fo.Cluster([[9, 18], [20, 5]], [[1, 4], [3, 1], [1, 1]], max_tasks=[4, 50, 3])
for name in ("drf", "drfh", "tsf", "ceei", "ps-dsf", "alpha-fair(alpha=2)", "alphapf-vds(alpha=3)"):
    for cluster in (pool, servers):
        found = fo.solve(cluster, name)
        assert found.certificate.passes(1e-6), (name, repr(found))
        assert found.to_frame().shape[0] == len(cluster.users)
for alpha in (0.5, 1, 3, float("inf")):
    assert fo.best_response(servers, alpha).certificate.passes(1e-5)
for mechanism in ("alphapf-vds", "alpha-fair"):
    path = fo.alpha_path(servers, [0, 0.5, 1, 2, 8, float("inf")], mechanism=mechanism)
    assert path["certified"].all(), path
print(fo.compare(servers, "drf, drfh, tsf, ceei, ps-dsf, alphapf-vds"))
print(fo.compare(pool, "utilitarian, drf")._repr_html_())
"""


def test_small_clusters_need_three_libraries() -> None:
    assert "alphaPF-VDS(alpha=3)" in python("-c", BLOCKED + SMALL)
