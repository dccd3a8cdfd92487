"""PF section 6 on draws of a day: `python -m benchmarks.semi_dynamic --help`.

Prints means with 95% intervals over draws, and what PS-DSF gains over the others on the same draw. With `--keep FILE`
what is done is kept there after every draw, and the same command goes on.
"""

from __future__ import annotations

import argparse
import dataclasses
import pickle
from pathlib import Path

from fairopt.harness.semi_dynamic import SemiDynamic, pf_section6
from fairopt.workloads import open_workload


def shown(found: SemiDynamic) -> str:
    """Tables as text."""
    parts = [found.means(["utilization", "done", "work", "quick", "seconds"]).to_string(index=False)]
    uses = [name for name in found.cells if name.startswith("use of")]
    for measure in ("utilization", *uses, "work", "quick"):
        gains = found.gains("PS-DSF", measure).to_string(index=False)
        parts.append(f"gain of PS-DSF in {measure}, per cent\n{gains}")
    parts.append(f"jobs sooner with PS-DSF (log2)\n{found.speedups('PS-DSF').to_string(index=False)}")
    solves, worst, flagged = found.cells["solves"].sum(), found.cells["certificate"].max(), found.cells["flagged"].sum()
    return "\n\n".join([*parts, f"{solves} solves, certificates <= {worst:.1e}, {flagged} flagged"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", default="google-day?tasks=60000&servers=600&load=1.5", help="without a seed")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--by", choices=["job", "user"], default="job")
    parser.add_argument("--idle", action="store_true", help="what is released is idle until the next five minutes")
    parser.add_argument("--limits", action="store_true", help="no task runs faster than on its own")
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--plot", type=Path)
    asked = parser.parse_args()
    found = None
    if asked.keep and asked.keep.exists():
        found = SemiDynamic(**pickle.loads(asked.keep.read_bytes()))
    for seed in range(asked.draws):
        workload = open_workload(f"{asked.workload}&seed={seed}")
        workload = dataclasses.replace(workload, source=f"{workload.source}, seed {seed}")
        found = pf_section6(
            workload,
            by=asked.by,
            limits=asked.limits,
            idle=asked.idle,
            until=3600 * asked.hours,
            before=found,
            progress=True,
        )
        if asked.keep:
            asked.keep.write_bytes(pickle.dumps(vars(found)))
        if found.interrupted:
            break
    assert found is not None
    print(shown(found))
    if asked.plot:
        found.plot().savefig(asked.plot)


if __name__ == "__main__":
    main()
