"""PF section 6 on draws of a day: `python -m benchmarks.semi_dynamic --help`.

Prints means with 95% intervals over draws, and what PS-DSF gains over the others on the same draw. With `--keep FILE`
what is done is kept there after every draw, and the same command goes on.
"""

from __future__ import annotations

import argparse
import pickle
from pathlib import Path

from fairopt.harness.semi_dynamic import SemiDynamic, pf_section6

from .fluid import day

#: How work comes: whole jobs without limits, as with a task of its own speed, and anew every five minutes.
SCENARIOS = {"whole": (False, False, "job"), "limited": (False, True, "job"), "sliced": (True, False, "user")}


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
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), default="whole")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1500)
    parser.add_argument("--load", type=float, default=1.2)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--plot", type=Path)
    asked = parser.parse_args()
    sliced, limits, by = SCENARIOS[asked.scenario]
    found = None
    if asked.keep and asked.keep.exists():
        found = SemiDynamic(**pickle.loads(asked.keep.read_bytes()))
    for seed in range(asked.draws):
        workload = day(seed, asked.jobs, load=asked.load, sliced=sliced)
        found = pf_section6(workload, by=by, limits=limits, until=3600 * asked.hours, before=found, progress=True)
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
