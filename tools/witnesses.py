"""Find a counterexample for everything that mechanisms say they have not: docs/witnesses/MECHANISM--PROPERTY.json.

    python tools/witnesses.py                # those that are missing

`make readme` writes docs/choose.md from claims and witnesses. `fairopt properties` searches for counterexamples of what
mechanisms say they have.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from fairopt import properties

WITNESSES = Path(__file__).resolve().parent.parent / "docs" / "witnesses"
#: The most trials for one counterexample.
TRIALS = 200_000


def main() -> int:
    """Search for what is missing; 1 if a claim lacks its counterexample."""
    missing = False
    for claimed in properties.claims(holds=False):
        path = WITNESSES / f"{claimed.mechanism.name}--{claimed.claim.property}.json"
        if not path.exists():
            start = time.process_time()
            found = properties.search(claimed.mechanism, claimed.claim.property, TRIALS, rng=1)
            seconds = time.process_time() - start
            sys.stdout.write(f"{claimed.mechanism}, {claimed.claim.property}: {seconds:.1f} s\n{found}\n\n")
            missing |= found is None
            if found is not None:
                found.save(path)
    return int(missing)


if __name__ == "__main__":
    sys.exit(main())
