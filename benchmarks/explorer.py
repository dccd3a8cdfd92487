"""Moves of the explorer's slider in Chromium, timed in the page: `python -m benchmarks.explorer [--size 20x10]`.

Milliseconds from the input event to the first drawing, to the answer, and to the frame that shows it; and CPU
milliseconds a move of the page and of the Python that answers, which say more on a busy machine. Needs Chromium and its
driver.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from chromium import READY, Chromium, missing  # noqa: E402
from explorer_moves import Move, moves  # noqa: E402

from fairopt.explorer import Session  # noqa: E402
from fairopt.explorer import page as pages  # noqa: E402
from fairopt.explorer.server import Server  # noqa: E402
from fairopt.workloads import open_source  # noqa: E402

#: All that is asked aside has been answered.
_QUIET = 'return document.querySelector(".fo-explorer").dataset.asked === "0"'


def session(size: str) -> Session:
    """Lognormal users and servers of a size such as 20x10."""
    users, servers = size.split("x")
    return Session(open_source(f"lognormal?users={users}&servers={servers}&seed=1").cluster, source=size)


def timed(browser: Chromium, address: str, places: list[float], warm: bool) -> tuple[list[Move], float, float]:
    """Moves, and CPU seconds of the page and of this process over all of them."""
    browser.open(address)
    browser.wait(READY)
    if warm:
        browser.wait(_QUIET, seconds=600)
    browser.cdp("Performance.enable", timeDomain="threadTicks")
    before, own = _spent(browser), time.process_time()
    found = moves(browser, places)
    return found, _spent(browser) - before, time.process_time() - own


def _spent(browser: Chromium) -> float:
    metrics = {one["name"]: one["value"] for one in browser.cdp("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"])


def line(label: str, found: list[Move], page: float, own: float) -> str:
    """Median and worst, in one line."""
    parts = []
    for name in ("first", "answer", "frame"):
        values = [getattr(one, name) for one in found]
        parts.append(f"{name} {np.median(values):5.0f} {max(values):5.0f}")
    nearest, late = sum(one.instead for one in found), sum(one.first > 100 for one in found)
    cpu = f"CPU a move: page {1000 * page / len(found):.0f}, Python {1000 * own / len(found):.0f}"
    return f"{label:22} {' | '.join(parts)} | first after 100 ms {late:2d} | nearest first {nearest:2d} | {cpu}"


def main(arguments: list[str] | None = None) -> None:
    """Print a line per host and size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--host", action="append", choices=["live", "file"], help="default: both")
    parser.add_argument("--size", action="append", help="users x servers; default: 20x10 and 200x50")
    parser.add_argument("--moves", type=int, default=60)
    options = parser.parse_args(arguments)
    if missing():
        sys.exit(missing())
    print(f"ms: median, worst of {options.moves} moves; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    places = [float(t) for t in np.random.default_rng(7).random(options.moves)]
    for size in options.size or ["20x10", "200x50"]:
        for host in options.host or ["live", "file"]:
            with tempfile.TemporaryDirectory() as folder, Chromium() as browser:
                if host == "file":
                    file = Path(folder, "page.html")
                    pages.write(session(size), file)
                    print(line(f"file {size}", *timed(browser, file.as_uri(), places, True)))
                    continue
                for warm in (False, True):
                    with Server(session(size)) as server:
                        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
                        thread.start()
                        found = timed(browser, server.address, places, warm)
                        print(line(f"live {size} {'path known' if warm else 'from the start'}", *found))
                        browser.open("about:blank")
                        server.shutdown()
                        thread.join()


if __name__ == "__main__":
    main()
