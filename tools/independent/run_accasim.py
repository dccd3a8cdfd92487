"""Runs AccaSim on a drawn workload (`tools/independent_starts.py` calls it with a Python that has AccaSim 1.1.3).

python run_accasim.py IN.json OUT.json: writes the start of every job [s], the number of its node, and
the CPU seconds that it took.
"""

import collections
import collections.abc
import datetime
import importlib.metadata
import json
import pathlib
import re
import sys
import tempfile
import time

collections.Mapping = collections.abc.Mapping  # type: ignore[attr-defined]  # gone from Python 3.10 on

from accasim.base.allocator_class import FirstFit  # noqa: E402
from accasim.base.event_class import AttributeType, JobFactory  # noqa: E402
from accasim.base.resource_manager_class import ResourceManager, Resources  # noqa: E402
from accasim.base.scheduler_class import FirstInFirstOut  # noqa: E402
from accasim.base.simulator_class import Simulator  # noqa: E402
from accasim.utils.reader_class import DefaultReader, Tweaker  # noqa: E402


class OneNode(Tweaker):  # type: ignore[misc]
    """A job runs on one node, with the cores and the memory that it asks for."""

    def tweak_function(self, job):  # type: ignore[no-untyped-def]
        job["core"] = job["total_processors"]
        job["requested_resources"], job["requested_nodes"] = {"core": job["core"], "mem": job["mem"]}, 1
        job["queue"] = job.pop("queue_number")
        return job


def main() -> None:
    given, found = (pathlib.Path(text) for text in sys.argv[1:])
    problem = json.loads(given.read_text())
    folder = pathlib.Path(tempfile.mkdtemp())
    groups = {f"g{k}": {"core": row["cpu"], "mem": row["memory"]} for k, row in enumerate(problem["servers"])}
    nodes = {f"g{k}": row["count"] for k, row in enumerate(problem["servers"])}
    resources = {"groups": groups, "resources": nodes}
    (folder / "system.json").write_text(json.dumps(resources))
    tasks = problem["tasks"]
    rows = zip(tasks["arrival"], tasks["duration"], tasks["cpu"], tasks["memory"], strict=True)
    lines = [
        f"{k + 1} {arrival} -1 {duration} {cpu} -1 {memory} {cpu} {duration} {memory} 1 1 1 1 1 1 -1 -1"
        for k, (arrival, duration, cpu, memory) in enumerate(rows)
    ]
    (folder / "jobs.swf").write_text("\n".join(lines) + "\n")
    manager = ResourceManager(Resources(**resources))
    attributes = [AttributeType(name, int) for name in ("core", "mem", "expected_duration", "queue", "user_id")]
    factory = JobFactory(manager, job_attrs=attributes, job_mapper={
        "job_number": "job_id", "requested_time": "expected_duration", "executable_number": "executable",
        "partition_number": "partition"})  # fmt: skip
    simulator = Simulator(
        str(folder / "jobs.swf"), str(folder / "system.json"), FirstInFirstOut(FirstFit()), resource_manager=manager,
        job_factory=factory, reader=DefaultReader(str(folder / "jobs.swf"), factory, tweak_function=OneNode()),
        RESULTS_FOLDER_PATH=str(folder), show_statistics=False, statistics_output=False,
    )  # fmt: skip
    before = time.process_time()
    simulator.start_simulation()
    took = time.process_time() - before
    # 28;1;1970-01-01 00:02:04__10;3;5#__1970-01-01 00:02:04;...: job, user, queued, node; cores; memory, start
    line = re.compile(r"^(\d+);.*?__(\d+);\d+;\d+#__(\S+ \S+?);")
    starts: dict[int, tuple[int, int]] = {}
    for match in map(line.match, (folder / "sched-jobs.swf").read_text().splitlines()):
        assert match is not None
        job, node, begun = match.groups()
        seconds = datetime.datetime.fromisoformat(begun + "+00:00").timestamp()
        starts[int(job) - 1] = int(seconds), int(node) - 1
    inorder = [starts[k] for k in range(len(tasks["arrival"]))]
    answer = {"start": [start for start, _ in inorder], "server": [node for _, node in inorder]}
    found.write_text(json.dumps(answer | {"version": importlib.metadata.version("accasim"), "seconds": took}))


main()
