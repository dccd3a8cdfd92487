"""Reports, comparisons and pages by the queues that a snapshot declares."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from workloads.test_kubernetes_snapshots import OBJECTS, expanded
from workloads.test_slurm_reports import ENTITLED, ROOT, job, nodes, tree

import fairopt as fo
from fairopt.app.cli import main
from fairopt.app.explorer.edits import State
from fairopt.app.explorer.session import Session
from fairopt.app.explorer.standing import standing
from fairopt.errors import DataError
from fairopt.workloads import Snapshot, kubernetes, slurm


@pytest.fixture(scope="module")
def accounts() -> Snapshot:
    return slurm.snapshot(*ENTITLED["S7 a tree"][:3], "here")


def entitled(snapshot: Snapshot, *requested: str, mechanism: str | None = None) -> dict[str, float]:
    """Entitlements after the changes, and of the first mechanism."""
    found = standing(
        snapshot.cluster, State.usual(snapshot, mechanism), snapshot=snapshot, requested=requested, compared=["drfh"]
    )
    if found.changes is not None:
        return dict(zip(found.changes["user"], found.changes["after"], strict=True))
    return dict(zip(found.users["user"], found.users.iloc[:, 5], strict=True))


@pytest.mark.parametrize(
    ("requested", "tasks"),
    [
        ([], [4, 4, 2]),
        (["weight.phys=20"], [2.5, 2.5, 5]),  # an account
        (["weight.l1=3"], [6, 2, 2]),  # its shares among siblings
        (["weight.l3=7"], [4, 4, 2]),  # has no siblings
        (["nodes.c=+1", "weight.bio=80"], [5, 5, 10]),
    ],
)
def test_the_declared_tree_is_the_usual_mechanism(accounts: Snapshot, requested: list[str], tasks: list[float]) -> None:
    assert entitled(accounts, *requested) == pytest.approx(dict(zip(["l1", "l2", "l3"], tasks, strict=True)))


def test_edits_of_weights_of_users_count_among_siblings(accounts: Snapshot) -> None:
    """A weight in the cluster that is three times as large stands for three times the shares."""
    session = Session(accounts.cluster, State.usual(accounts), snapshot=accounts)
    assert accounts.cluster.weight.tolist() == [40, 40, 20]
    edited = session.allocation(State("tree", edits={"users/0/weight": "120"}))
    assert edited.user_tasks.tolist() == pytest.approx([6, 2, 2])
    shares = tree(ROOT, ("a", "root", 3), ("b", "root", 1))
    flat = slurm.snapshot(nodes("c", cpu=10), [*job("a", times=20), *job("b", times=20)], shares, "here")
    edited = Session(flat.cluster, State.usual(flat), snapshot=flat).allocation(
        State("tree", edits={"users/0/weight": 9})
    )
    assert edited.user_tasks.tolist() == pytest.approx([9, 1])
    assert fo.DRFH().solve(accounts.cluster).user_tasks.tolist() == pytest.approx([4, 4, 2])


def test_a_named_mechanism_prevails(accounts: Snapshot) -> None:
    assert (
        str(Session(accounts.cluster, State.usual(accounts, "tsf"), snapshot=accounts).mechanism(State("tsf"))) == "TSF"
    )
    flat = {"l1": 10 / 3, "l2": 10 / 3, "l3": 10 / 3}
    assert entitled(accounts, mechanism="tree(queues={})") == pytest.approx({"l1": 4, "l2": 4, "l3": 2})  # cluster's
    assert entitled(accounts, "weight.l3=40", mechanism="drfh") == pytest.approx(flat)


def test_quotas_that_cannot_be_met_are_lowered_together(tmp_path: Path) -> None:
    """Of 8 CPUs 6 and 6 are promised: 4 and 4, as two thirds of each, within the steps of the bisection."""
    queue = {"kind": "Queue", "spec": {"deserved": {"cpu": "6"}}}
    objects = [queue | {"metadata": {"name": name}} for name in "ab"]
    entries = [
        {"pods": 8, "in": name, "meta": {"annotations": {"scheduling.volcano.sh/queue-name": name}}} for name in "ab"
    ]
    objects += [one for entry in [{"node": "n"}, *entries] for one in expanded(entry)]
    (tmp_path / "now.json").write_text(json.dumps({"items": objects}))
    assert fo.shadow(tmp_path).frame["entitled"].tolist() == pytest.approx([4, 4])
    found = kubernetes.snapshot(objects, "here")
    assert found.queues is not None
    with pytest.raises(DataError, match="quotas cannot be met together"):
        fo.Tree(found.queues).solve(found.cluster)
    assert entitled(found) == pytest.approx({"a": 4, "b": 4})
    said = standing(found.cluster, snapshot=found).notes
    assert any(
        note.startswith("Entitlements are for 66% of each quota, since the quotas cannot be met") for note in said
    )


def test_commands_use_the_declared_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "snapshot.json"
    path.write_text(
        json.dumps(
            {"kind": "List", "items": OBJECTS["T a limit of borrowing, quotas of a cohort, and what no quota covers"]}
        )
    )
    source = f"kubernetes:{path}"
    assert main(["solve", source, "-m", "tree", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["users"] == pytest.approx({"a": 4, "b": 5})
    assert main(["report", source]) == 0
    assert "2 users on 1 node; weights are those of queues, among siblings." in capsys.readouterr().out
    assert main(["report", source, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["mechanism"] == "tree(combine=vector)"
    assert main(["compare", source, "--json"]) == 0
    rows = {row["mechanism"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["tree(combine=vector)"]["tasks"] == pytest.approx(9)
    assert rows["running"]["distance"] == pytest.approx(9 / 12 / 2)
