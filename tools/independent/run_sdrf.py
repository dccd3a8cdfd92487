# ruff: noqa: SIM115, B905, C402  Python 2.7 runs this
"""Runs sdrf's WDRF on a drawn workload (`tools/independent_starts.py` calls it with a Python 2.7 that has NumPy).

python2.7 run_sdrf.py IN.json OUT.json: writes the start of every task [s]. The folder of sdrf is in PYTHONPATH.
"""

import json
import sys

from sdrf.allocators import Task
from sdrf.allocators.wdrf import WDRF


def main():  # type: ignore[no-untyped-def]
    problem = json.load(open(sys.argv[1]))
    rows, users = problem["tasks"], problem["users"]
    for user in range(len(users)):  # numbers of users are in order of when they are first seen
        Task._user_index[user]
    server = problem["servers"][0]
    weights = {user: [weight, weight] for user, weight in enumerate(users)}
    one = WDRF([server["cpu"], server["memory"]], len(users), weights)
    tasks = [
        Task(user, k, arrival, arrival + duration, (cpu, memory), arrival)
        for k, (user, arrival, duration, cpu, memory) in enumerate(
            zip(*(rows[name] for name in ("user", "arrival", "duration", "cpu", "memory")))
        )
    ]
    one.simulate(iter(tasks))
    start = dict((task.task_id, int(task.start_time)) for task in one.finished_tasks)
    with open(sys.argv[2], "w") as file:
        json.dump({"start": [start[k] for k in range(len(tasks))]}, file)


main()
