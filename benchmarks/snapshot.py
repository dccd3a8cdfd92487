"""A large Kubernetes snapshot, read as a stream: `python -m benchmarks.snapshot [--nodes 5000] [--pods 100000]`.

A file as `kubectl get nodes,pods,namespaces -A -o json` prints it, each pod padded to 10 KB by an annotation (as
managed fields and environments do), is written aside; a process of its own reads it and solves alphaPF-VDS(1). Printed
are CPU seconds and the largest memory of that process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from fairopt.workloads.kubernetes_like import drawn

_READ = """
import resource, sys, time
import fairopt as fo
from fairopt.workloads import open_source
begun = time.process_time()
cluster = open_source("kubernetes:" + sys.argv[1]).cluster
read = time.process_time() - begun
found = fo.AlphaPFVDS(1).solve(cluster)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(f"{cluster!r}: {read:.1f} CPU s to read, {time.process_time() - begun:.1f} with its solve, {peak:.2f} GiB")
"""


def write(file: Path, nodes: int, pods: int, size: int) -> None:
    """The snapshot, one object after another."""
    with file.open("w", encoding="utf-8") as out:
        out.write('{"apiVersion": "v1", "kind": "List", "items": [\n')
        for k, item in enumerate(drawn(np.random.default_rng(0), nodes, pods, 50)):
            if item["kind"] == "Pod":
                annotations = item["metadata"].setdefault("annotations", {})
                annotations["padding"] = "x" * max(0, size - len(json.dumps(item)))
            out.write((",\n" if k else "") + json.dumps(item))
        out.write("\n]}\n")


def main() -> None:
    """Write, read, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=10_000, help="bytes of a pod")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "snapshot.json")
        write(file, options.nodes, options.pods, options.size)
        print(f"{file.stat().st_size / 1e9:.2f} GB", flush=True)
        subprocess.run([sys.executable, "-c", _READ, str(file)], check=True)


if __name__ == "__main__":
    main()
