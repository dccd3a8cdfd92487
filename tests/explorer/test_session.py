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

import fairopt as fo
from fairopt.explorer import Session, State
from fairopt.explorer import session as module
from fairopt.explorer import view as views
from fairopt.explorer.standing import standing
from fairopt.explorer.texts import call, python
from fairopt.result import metrics
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
    cluster = session.start.edited({"users/0/weight": 2}).cluster
    found = fo.AlphaPFVDS(float(alpha)).solve(cluster)
    assert reply["mechanism"] == str(fo.AlphaPFVDS(float(alpha)))
    np.testing.assert_allclose(reply["bars"]["tasks"][: len(found.cluster.users)], found.arrays.user_tasks, rtol=1e-4)
    np.testing.assert_allclose(reply["users"]["tasks"], found.arrays.user_tasks, rtol=1e-4)
    assert reply["measures"]["utilization"] == pytest.approx(np.mean(found.utilization), rel=1e-5)
    assert reply["certificate"].startswith("Certified")


def test_the_last_answer_in_python(session: Session) -> None:
    ask(session, alpha=3, edits={"users/0/on": False})
    session.reply({"ask": "answer", "state": {"alpha": 9}, "aside": True})
    found = session.allocation()
    assert found.mechanism == "alphaPF-VDS(alpha=3)"
    assert len(found.cluster.users) == 1
    ask(session, "now", alpha=4)
    assert session.allocation().mechanism == "alphaPF-VDS(alpha=4)"
    assert ask(session, "now", alpha="x")["where"] == "alpha"
    assert session.last.alpha == 4


def test_many_users_are_grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are of those with the largest shares; groups say what lies between."""
    monkeypatch.setattr(views, "_ROWS", 40)
    session = Session(open_source("google-like?users=500&seed=1").cluster)
    reply = ask(session, mechanism="drfh")
    found, users = fo.DRFH().solve(session.cluster), reply["users"]
    left = np.delete(found.arrays.dominant_shares, users["of"])
    assert (len(users["of"]), sum(group["users"] for group in users["groups"])) == (40, 460)
    assert min(users["share"]) >= left.max() * (1 - 1e-4)
    assert min(group["least"] for group in users["groups"]) == pytest.approx(left.min(), rel=1e-4)
    assert max(group["most"] for group in users["groups"]) == pytest.approx(left.max(), rel=1e-4)
    assert all(group["least"] <= group["most"] for group in users["groups"])
    total = sum(users["tasks"]) + sum(group["tasks"] for group in users["groups"])
    assert total == pytest.approx(found.arrays.user_tasks.sum(), rel=1e-4)
    assert (reply["bars"]["bands"], reply["bars"]["others"]) == (["mostly cpu", "mostly memory"], 0)
    assert len(json.dumps(reply)) < 40_000
    np.testing.assert_allclose(np.sum(reply["bars"]["heights"], axis=0)[0], reply["use"], atol=2e-3)


def test_more_users_than_colours_are_coloured_by_group() -> None:
    """Twelve teams of three users: the eight with the largest shares have colours, as long as the session lasts."""
    rng = np.random.default_rng(1)
    teams = [f"team{k}" for k in range(12) for _ in "abc"]
    users = [f"{team}/{k}" for k, team in enumerate(teams)]
    session = Session(fo.Cluster(rng.uniform(50, 100, (4, 2)), rng.uniform(0.1, 2, (36, 2)), users=users))
    reply = ask(session, alpha=0.5, edits={"users/4/on": False})
    bars, listed = reply["bars"], reply["users"]
    assert (bars["what"], len(bars["bands"])) == ("namespaces or accounts", 8)
    assert bars["others"] == 4 * 3 - (0 if "team1" in bars["bands"] else 1)
    shares = pd.Series(listed["share"]).groupby([teams[n] for n in listed["of"]]).sum()
    assert {*bars["bands"]} == {*shares.nlargest(8).index}
    names = [*bars["bands"], "others"]
    for n, band in zip(listed["of"], listed["band"], strict=True):
        assert names[band] == (teams[n] if teams[n] in names else "others")
    assert ask(session, mechanism="tsf", edits={"users/0/weight": 40})["bars"]["bands"] == bars["bands"]


def test_what_holds_each_user() -> None:
    cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]], max_tasks=[2, math.inf], resources=["cpu", "memory"])
    session = Session(cluster)
    assert ask(session, mechanism="drf")["users"]["held"] == ["has all its tasks", "cpu"]
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


def test_what_has_no_alpha_is_solved_once(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ask(session, "row", row="tsf", alpha=1)
    monkeypatch.setattr(fo.TSF, "solve", None)
    assert ask(session, "row", row="tsf", alpha=2) is first
    assert ask(session, "row", row="tsf", alpha=2, mechanism="drfh") is first


def test_what_more_adds_is_asked_of_the_answer_that_is_shown(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(session, mechanism="drfh")
    monkeypatch.setattr(fo.DRFH, "solve", None)
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
    assert reply["note"].startswith("1% more there")
    margins = standing(cluster, State("alphapf-vds", 2.0)).margins  # which tests/explorer/test_standing.py solves again
    assert [row[:2] for row in reply["rows"]] == margins[["nodes", "resource"]].to_numpy().tolist()
    np.testing.assert_allclose([row[2] for row in reply["rows"]], margins["tasks more"], rtol=1e-3)
    edited = ask(found, "more", alpha=2, edits={"users/0/on": False})
    assert edited["rows"] != reply["rows"]
    assert "user1" not in str(edited["rows"])


def test_why_it_is_not_known_what_more_adds(monkeypatch: pytest.MonkeyPatch, session: Session) -> None:
    reply = session.reply({"ask": "more", "state": {"mechanism": "ps-dsf"}})
    assert reply["rows"] == []
    assert reply["note"].startswith("No derivatives: ")
    monkeypatch.setattr(module, "_ROWS", 1)
    fresh = Session(session.cluster)
    many = fresh.reply({"ask": "more", "state": {"mechanism": "alphapf-vds", "alpha": 3}})
    assert len(many["rows"]) == 1
    assert re.match(r"\d more, not shown\. 1% more there", many["note"])
    monkeypatch.setattr(module, "_DERIVED", 1)
    asked = {"ask": "more", "state": {"mechanism": "alphapf-vds", "alpha": 2}}
    assert fresh.reply(asked) == {"rows": [], "note": "Not asked of more than 1 pairs of user and server."}


def test_code_gives_the_same_answer(session: Session) -> None:
    edits = {"users/0/weight": "2", "users/1/eligible/0": False, "users/0/max_tasks": "7"}
    text = ask(session, "python", alpha="inf", edits=edits)["text"]
    scope: dict[str, Any] = {"print": lambda *_: None}
    exec(text, scope)
    expected = fo.AlphaPFVDS(math.inf).solve(session.start.edited(edits).cluster)
    np.testing.assert_allclose(scope["allocation"].user_tasks, expected.arrays.user_tasks)
    assert scope["cluster"] == expected.cluster


def test_large_clusters_are_loaded_by_the_code() -> None:
    cluster = open_source("google-like?users=3000&seed=1").cluster
    assert 'fo.Cluster.load("cluster.toml")' in python(cluster, "DRFH")


def test_labels_as_calls() -> None:
    for name in fo.mechanisms.names():
        for one in fo.mechanisms.kind(name).variants():
            if "utility" not in str(one):
                assert eval(call(str(one)), {"fo": fo}) == one
    assert call("concave utility(utility=log1p)") == "fo.ConcaveUtility(utility='log1p')"


def test_the_file_is_the_edited_cluster(session: Session, tmp_path: Any) -> None:
    edits = {"servers/0/capacity/0": "7", "users/0/max_tasks": "5"}
    text = ask(session, "file", edits=edits)["text"]
    (tmp_path / "c.toml").write_text(text)
    assert fo.Cluster.load(tmp_path / "c.toml") == session.start.edited(edits).cluster


def test_bars_of_identical_servers_are_sums() -> None:
    cluster = fo.Cluster(
        [[4, 8], [16, 4], [4, 8]], [[1, 2], [2, 1], [1, 1]], servers=["rack-1", "big", "rack-2"], resources=["c", "m"]
    )
    for mechanism, kind in (("alphapf-vds", fo.AlphaPFVDS(1)), ("drfh", fo.DRFH())):
        bars = ask(Session(cluster), mechanism=mechanism)["bars"]
        use = kind.solve(cluster).tasks.T[:, :, None] * cluster.demand  # servers, users, resources
        expected = np.array([(use[0] + use[2]) / [8, 16], use[1] / [16, 4]]).transpose(1, 0, 2)
        assert bars["servers"] == ["rack ×2", "big"]
        np.testing.assert_allclose(bars["heights"], expected, atol=1e-3)
        assert not ask(Session(cluster), mechanism=mechanism)["pooled"]
    assert ask(Session(cluster), mechanism="drf")["pooled"]


def test_what_is_not_certified_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(open_source("lognormal?users=5&servers=3&seed=1").cluster)
    found = session.allocation()
    assert views.words(found.certificate, 1e-30).startswith("NOT certified (tolerance 1e-30): ")
    edited = session.start.edited({})
    assert ask(session)["flagged"] is False
    monkeypatch.setattr(fo.Allocation, "flagged", True)
    shown = views.view(session.start, edited, found, views.bands(session.start, edited, found))
    assert shown["flagged"] is True


@pytest.mark.parametrize(("index", "said"), [(0, "not locally unique"), (-1, "(index -1)"), (1, ""), (None, "")])
def test_what_the_index_of_an_equilibrium_says(session: Session, index: int | None, said: str) -> None:
    found = session.allocation(State(alpha=3.0))
    shown = SimpleNamespace(criterion=found.criterion, cluster=found.cluster, notes=(), index=index)
    text = views._equilibrium(shown)  # type: ignore[arg-type]
    assert said in text
    assert bool(text) == bool(said)


def test_other_equilibria_of_large_clusters_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairopt.explorer.session.equilibrium_curve", None)
    rng = np.random.default_rng(1)
    large = fo.Cluster(rng.uniform(5, 9, (10, 2)), rng.uniform(0.1, 2, (11, 2)))
    assert ask(Session(large), "several", alpha=3) == {"text": ""}


def test_of_several_equilibria_the_user_who_differs_most_is_named() -> None:
    cluster = fo.Cluster([[20, 11, 2], [3, 9, 4]], [[1, 9, 8], [3, 8, 1], [16, 8, 1]], weight=[2, 1, 2])
    text = ask(Session(cluster), "several", alpha=3)["text"]
    tasks = np.array([one.arrays.user_tasks for one in fo.game.equilibria(cluster, 3).allocations])
    apart = int(np.ptp(tasks, axis=0).argmax())
    found = re.search(r"alpha = 1: (\w+) has (.*) tasks", text)
    assert found is not None
    assert found[1] == cluster.users[apart]
    np.testing.assert_allclose(sorted(map(float, found[2].split(" or "))), sorted(tasks[:, apart]), rtol=1e-3)


def test_answers_are_remembered_by_edits_and_alpha() -> None:
    session = Session(open_source("lognormal?users=5&servers=3&seed=1").cluster)
    asked: list[dict[str, Any]] = [{}, {"edits": {"users/0/weight": 9}}, {"alpha": 3}, {"mechanism": "tsf"}]
    replies = [ask(session, **state) for state in asked]
    assert len({tuple(reply["users"]["tasks"]) for reply in replies}) == 4
    assert [ask(session, **state) for state in asked] == replies


def test_errors_are_not_remembered_and_answers_not_for_ever(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT", 3)
    for alpha in (1, "x", 2, 3, 4, 5):
        ask(session, alpha=alpha)
    assert len(session._kept) == 3
    assert all("error" not in reply for reply in session._kept.values())
