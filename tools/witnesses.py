"""Find a counterexample for everything that mechanisms say they have not: docs/witnesses/MECHANISM--PROPERTY.json.

    python tools/witnesses.py                # those that are missing
    python tools/witnesses.py --again        # all of them
    python tools/witnesses.py --verify       # verify those that are kept by the best route there is, and write them

`make readme` writes docs/choose.md from claims and witnesses. `fairopt properties` searches for counterexamples of what
mechanisms say they have.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from fairopt import properties
from fairopt.errors import FairoptError

WITNESSES = Path(__file__).resolve().parent.parent / "docs" / "witnesses"
#: The most trials for one counterexample.
TRIALS = 200_000


def file_of(claimed: properties.Claimed) -> Path:
    """Where the counterexample of a claim is kept."""
    return WITNESSES / f"{claimed.mechanism.name}--{claimed.claim.property}.json"


def find(again: bool) -> int:
    """Search for what is missing; the number of counterexamples that were not found."""
    missing = 0
    WITNESSES.mkdir(exist_ok=True)
    for claimed in properties.claims(holds=False):
        if again or not file_of(claimed).exists():
            start = time.process_time()
            found = properties.search(claimed.mechanism, claimed.claim.property, TRIALS, rng=1)
            _say(f"{claimed.mechanism}, {claimed.claim.property}: {time.process_time() - start:.1f} s\n{found}\n")
            missing += found is None
            if found is not None:
                found.save(file_of(claimed))
    return missing


def verify() -> int:
    """Verify again what is kept, and write it; the number that could not be verified."""
    wrong = 0
    for path in sorted(WITNESSES.rglob("*.json")):
        old = properties.Witness.load(path)
        try:
            properties.verify(old.mechanism, old.property, *old.instance).save(path)
        except FairoptError as error:
            _say(f"{path}: {error}")
            wrong += 1
    return wrong


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Search; 1 if a claim lacks its counterexample."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--again", action="store_true", help="find those that are kept anew")
    options.add_argument("--verify", action="store_true", help="verify what is kept anew, without a search")
    given = options.parse_args()
    return int(bool(verify() if given.verify else find(given.again)))


if __name__ == "__main__":
    sys.exit(main())
