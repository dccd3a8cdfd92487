"""Questions of a view and their answers: certified, of bounded size, the same as `solve` gives."""

from __future__ import annotations

import json
import math
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from families import EXAMPLE
from game.clusters import SEVERAL
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.app.explorer import Session, State
from fairopt.app.explorer import session as module
from fairopt.app.explorer import view as views
from fairopt.app.explorer.standing import standing
from fairopt.app.explorer.texts import head
from fairopt.result import metrics
from fairopt.result.palette import of_users
from fairopt.workloads import open_source


@pytest.fixture
def session() -> Session:
    return Session(fo.papers.instance("drfh-fig1"))


def ask(session: Session, what: str = "answer", **state: Any) -> dict[str, Any]:
    more = {"mechanism": state.pop("row")} if "row" in state else {}
    reply = session.reply(json.loads(json.dumps({"ask": what, "state": state} | more)))
    json.dumps(reply, allow_nan=False)
    return reply


@pytest.mark.parametrize("alpha", [0, 0.5, 1, 3, "inf"])
def test_an_answer_is_what_solve_gives(session: Session, alpha: float | str) -> None:
    reply = ask(session, alpha=alpha, edits={"users/0/weight": "2"})
    found = fo.AlphaPFVDS(float(alpha)).solve(session.start.edited({"users/0/weight": 2}).cluster)
    assert reply["mechanism"] == found.mechanism
    for shown in (reply["bars"]["tasks"][:2], reply["users"]["tasks"]):
        assert_allclose(shown, found.arrays.user_tasks, rtol=1e-4)
    assert reply["measures"]["utilization"] == pytest.approx(np.mean(found.utilization), rel=1e-5)
    assert reply["certificate"].startswith("Certified")


def test_the_last_answer_in_python(session: Session) -> None:
    ask(session, alpha=3, edits={"users/0/on": False})
    session.reply({"ask": "answer", "state": {"alpha": 9}, "aside": True})
    found = session.allocation()
    assert (found.mechanism, len(found.cluster.users)) == ("alphaPF-VDS(alpha=3)", 1)
    ask(session, "now", alpha=4)
    assert ask(session, "now", alpha="x")["where"] == "alpha"
    assert session.last.alpha == 4


def test_many_users_are_grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are of those with the largest shares; groups say what lies between."""
    monkeypatch.setattr(views, "_ROWS", 40)
    session = Session(open_source("google-like?users=500&seed=1").cluster)
    reply = ask(session, mechanism="drfh")
    found, users = fo.DRFH().solve(session.cluster), reply["users"]
    groups = pd.DataFrame(users["groups"])
    left = np.delete(found.arrays.dominant_shares, users["of"])
    assert (len(users["of"]), groups["users"].sum()) == (40, 460)
    assert min(users["share"]) >= left.max() * (1 - 1e-4)
    ends = [groups["least"].min(), groups["most"].max(), sum(users["tasks"]) + groups["tasks"].sum()]
    assert ends == pytest.approx([left.min(), left.max(), found.arrays.user_tasks.sum()], rel=1e-4)
    assert (reply["bars"]["bands"], reply["bars"]["others"]) == (["mostly cpu", "mostly memory"], 0)
    assert len(json.dumps(reply)) < 40_000
    assert_allclose(np.sum(reply["bars"]["heights"], axis=0)[0], reply["use"], atol=2e-3)


def test_more_users_than_colours_are_coloured_by_group() -> None:
    """Twelve teams of three users: the eight with the largest shares have colours, as long as the session lasts."""
    rng = np.random.default_rng(1)
    teams = [f"team{k // 3}" for k in range(36)]
    users = [f"{team}/{k}" for k, team in enumerate(teams)]
    session = Session(fo.Cluster(rng.uniform(50, 100, (4, 2)), rng.uniform(0.1, 2, (36, 2)), users=users))
    reply = ask(session, alpha=0.5)
    bars, listed = reply["bars"], reply["users"]
    shares = pd.Series(listed["share"]).groupby(teams).sum()
    assert (bars["what"], {*bars["bands"]}, bars["others"]) == (
        "namespaces or accounts",
        {*shares.nlargest(8).index},
        12,
    )
    assert bars["colours"] == of_users([int(name.removeprefix("team")) for name in bars["bands"]])
    names = [*bars["bands"], "others"]
    assert [names[band] for band in listed["band"]] == [team if team in names else "others" for team in teams]
    assert ask(session, mechanism="tsf", edits={"users/0/weight": 40})["bars"]["bands"] == bars["bands"]


def test_rates_of_a_table() -> None:
    cluster = fo.Cluster(
        np.ones((3, 1)), np.ones((3, 1)), rate=[[1, 4, 0], [2, 2, 2], [0, 3, 2]], servers=["a", "b", "c"]
    )
    assert Session(cluster).begin()["rates"] == ["1 on a to 4 on b", "2", "2 on c to 3 on b"]
    assert Session(cluster.replace(rate=None)).begin()["rates"] is None
    assert ask(Session(cluster), mechanism="tsf")["users"]["tasks"]


def test_what_holds_each_user() -> None:
    cluster = EXAMPLE.replace(max_tasks=[2, math.inf], resources=["cpu", "memory"])
    session = Session(cluster)
    assert ask(session, mechanism="drf")["users"]["held"] == ["its task limit", "cpu"]
    two = Session(fo.papers.instance("drfh-fig1"))
    assert ask(two, alpha=3)["users"]["held"] == ["CPU on server 1", "RAM on server 2"]


def test_rows_side_by_side_follow_edits(session: Session) -> None:
    edits = {"users/0/weight": "5"}
    row = ask(session, "row", row="tsf", edits=edits)
    found = fo.TSF().solve(session.start.edited(edits).cluster)
    assert row["min_share"] == pytest.approx(metrics.min_share(found), rel=1e-5)
    assert ask(session, "row", row="drf", edits=edits)["pooled"]
    assert ask(session, "row", row="alpha-fair", alpha=4)["mechanism"] == "alpha-fair(alpha=4)"
    assert ask(session, "row", row="fds(beta=2)")["mechanism"] == "FDS(beta=2)"


def test_what_is_known_is_not_solved_again(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has no alpha is the same at every alpha; what more adds is asked of the answer that is shown."""
    first = ask(session, "row", row="tsf", alpha=1)
    ask(session, mechanism="drfh")
    for kind in (fo.TSF, fo.DRFH):
        monkeypatch.setattr(kind, "solve", None)
    monkeypatch.setattr(module, "_SECONDS", 0.0)
    assert ask(session, "row", row="tsf", alpha=2, mechanism="drfh") == first
    assert "note" in ask(session, "more", mechanism="drfh")


@pytest.mark.parametrize(
    ("question", "where"),
    [
        ({"ask": "answer", "state": {"alpha": "much"}}, "alpha"),
        ({"ask": "answer", "state": {"mechanism": "nobody"}}, "mechanism"),
        ({"ask": "answer", "state": {"edits": {"users/0/weight": "-1"}}}, "users/0/weight"),
        ({"ask": "answer", "state": {"edits": []}}, ""),
        ({"ask": "answer", "state": 3}, ""),
        ({"ask": "row", "state": {}, "mechanism": "nobody"}, "mechanism"),
        ({"ask": "row", "state": {}, "mechanism": None}, "mechanism"),
        ({"ask": "format the disk"}, ""),
        ({"ask": ["answer"]}, ""),
        ("answer", ""),
        (None, ""),
    ],
)
def test_bad_questions_are_answered_too(session: Session, question: Any, where: str) -> None:
    before = session.last
    reply = session.reply(question)
    assert reply["error"]
    assert reply["where"] == where
    assert session.last == before


def test_more_of_a_resource_is_what_reports_say() -> None:
    """Servers n1 and n2 are alike, and get more together."""
    cluster = fo.Cluster([[8, 16], [8, 16], [4, 64]], [[1, 1], [1, 4], [2, 2]], servers=["n-1", "n-2", "big"])
    found = Session(cluster)
    reply = ask(found, "more", alpha=2)
    margins = standing(cluster, State("alphapf-vds", 2.0)).margins  # which tests/explorer/test_standing.py solves again
    assert [row[:2] for row in reply["rows"]] == margins[["nodes", "resource"]].to_numpy().tolist()
    assert [row[2] for row in reply["rows"]] == [float(f"{value:.3g}") for value in margins["tasks more"]]
    assert "user1" not in str(ask(found, "more", alpha=2, edits={"users/0/on": False})["rows"])


def test_why_it_is_not_known_what_more_adds(monkeypatch: pytest.MonkeyPatch, session: Session) -> None:
    assert ask(session, "more", mechanism="ps-dsf")["note"].startswith("No derivatives: ")
    monkeypatch.setattr(module, "_ROWS", 1)
    many = ask(session, "more", alpha=3)
    assert len(many["rows"]) == 1
    assert re.match(r"\d more, not shown\. 1% more there", many["note"])
    monkeypatch.setattr(module, "_DERIVED", 1)
    many = ask(session, "more", alpha=2)
    assert many == {"rows": [], "note": "Not computed for more than 1 pairs of user and server."}


def test_code_and_file_give_the_same_answer(session: Session, tmp_path: Any) -> None:
    edits = {"users/0/weight": "2", "users/1/eligible/0": False, "users/0/max_tasks": "7", "servers/0/capacity/0": "9"}
    scope: dict[str, Any] = {"print": lambda *_: None}
    exec(ask(session, "python", alpha="inf", edits=edits)["text"], scope)
    expected = fo.AlphaPFVDS(math.inf).solve(session.start.edited(edits).cluster)
    assert_allclose(scope["allocation"].user_tasks, expected.arrays.user_tasks)
    (tmp_path / "c.toml").write_text(ask(session, "file", edits=edits)["text"])
    assert scope["cluster"] == fo.Cluster.load(tmp_path / "c.toml") == expected.cluster


def test_large_clusters_are_loaded_by_the_code() -> None:
    cluster = open_source("google-like?users=3000&seed=1").cluster
    assert 'fo.Cluster.load("cluster.toml")' in head(cluster)


@pytest.mark.parametrize("kind", [fo.AlphaPFVDS(1), fo.DRFH()], ids=str)
def test_bars_of_identical_servers_are_sums(kind: fo.mechanisms.Mechanism) -> None:
    """Of answers that are for servers one by one, and of those for merged ones."""
    cluster = fo.Cluster([[4, 8], [16, 4], [4, 8]], [[1, 2], [2, 1], [1, 1]], servers=["rack-1", "big", "rack-2"])
    reply = ask(session := Session(cluster), mechanism=kind.name)
    use = kind.solve(cluster).tasks.T[:, :, None] * cluster.demand  # servers, users, resources
    expected = np.array([(use[0] + use[2]) / [8, 16], use[1] / [16, 4]]).transpose(1, 0, 2)
    assert (reply["bars"]["servers"], reply["pooled"]) == (["rack ×2", "big"], False)
    assert_allclose(reply["bars"]["heights"], expected, atol=1e-3)
    assert ask(session, mechanism="drf")["pooled"]


def test_what_is_not_certified_is_said(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    said = views.words(session.allocation().certificate, 1e-30)
    assert said.startswith("NOT certified (tolerance 1e-30): no capacity is exceeded by more than a relative 1e-15, ")
    assert ask(session)["flagged"] is False
    monkeypatch.setattr(fo.Allocation, "flagged", True)
    assert ask(session)["flagged"] is True


@pytest.mark.parametrize(("index", "said"), [(0, "not locally unique"), (-1, r"\(index -1\)"), (1, "^$"), (None, "^$")])
def test_what_the_index_of_an_equilibrium_says(session: Session, index: int | None, said: str) -> None:
    found = session.allocation(State(alpha=3.0))
    shown: Any = SimpleNamespace(criterion=found.criterion, cluster=found.cluster, notes=(), index=index)
    assert re.search(said, views._equilibrium(shown))


def test_of_several_equilibria_the_user_who_differs_most_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """In large clusters they are not looked for."""
    text = ask(Session(SEVERAL), "several", alpha=3)["text"]
    tasks = np.array([one.arrays.user_tasks for one in fo.game.equilibria(SEVERAL, 3).allocations])
    apart = int(np.ptp(tasks, axis=0).argmax())
    found = re.search(r"alpha = 1: (\w+) has (.*) tasks", text)
    assert found is not None
    assert found[1] == SEVERAL.users[apart]
    assert_allclose(sorted(map(float, found[2].split(" or "))), sorted(tasks[:, apart]), rtol=1e-3)
    monkeypatch.setattr("fairopt.app.explorer.session.equilibrium_curve", None)
    assert ask(Session(fo.Cluster(np.ones((10, 1)), np.ones((11, 1)))), "several", alpha=3) == {"text": ""}


def test_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers by edits, alpha and mechanism; no errors, and nothing for ever."""
    session = Session(open_source("lognormal?users=5&servers=3&seed=1").cluster)
    asked: list[dict[str, Any]] = [{}, {"edits": {"users/0/weight": 9}}, {"alpha": 3}, {"mechanism": "tsf"}]
    replies = [ask(session, **state) for state in asked]
    assert len({tuple(reply["users"]["tasks"]) for reply in replies}) == 4
    assert [ask(session, **state) for state in asked] == replies
    monkeypatch.setattr(module, "_KEPT", 3)
    for alpha in (1, "x", 2, 3, 4, 5):
        ask(session, alpha=alpha)
    assert len(session._found) == 3
