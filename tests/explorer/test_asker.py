"""Which question is asked next, without a browser: one is in flight, and of those about the state the latest wins."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from fairopt.app.explorer import page

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node here")

_HOST = """
const sent = [], done = [];
let hear = null, waiting = null;
const model = { on: (_, callback) => { hear = callback; }, send: ({ id, question }) => sent.push([id, question]) };
const ask = asker(model, (count) => { waiting = count; });
const answer = () => { const [id, question] = sent[sent.length - 1]; hear({ id, reply: question.name }); };
const told = (name) => (reply) => done.push([name, reply]);
const state = (name) => ask.state({ name }, told(name)), aside = (name) => ask.aside({ name }, told(name));
const must = (name) => ask.must({ name }, told(name));
"""


def run(script: str) -> dict[str, list[object]]:
    text = (Path(page.__file__).parent / "static" / "asker.js").read_text() + _HOST + script
    text += "\nconsole.log(JSON.stringify({ sent: sent.map((one) => one[1].name), done, waiting }));"
    found = subprocess.run(["node", "-e", text], check=True, capture_output=True, text=True, timeout=300)
    made: dict[str, list[object]] = json.loads(found.stdout)
    return made


def test_the_latest_question_wins() -> None:
    found = run("for (const k of [1, 2, 3, 4]) state(k); answer(); answer();")
    assert found == {"sent": [1, 4], "done": [[1, 1], [4, 4]], "waiting": 0}


def test_what_is_asked_aside_waits_and_is_forgotten() -> None:
    found = run("state(1); aside('a'); aside('b'); answer(); state(2); aside('c'); answer(); answer(); answer();")
    assert found["sent"] == [1, "a", 2, "c"]
    assert found["done"] == [[1, 1], ["a", "a"], [2, 2], ["c", "c"]]


def test_what_must_be_asked_goes_first_and_is_not_forgotten() -> None:
    found = run("state(1); state(2); aside('a'); must('m'); state(3); answer(); answer(); answer();")
    assert found["sent"] == [1, "m", 3]


def test_an_answer_to_another_question_is_not_heard() -> None:
    found = run("state(1); hear({ id: 99, reply: 'x' });")
    assert found["done"] == []
    assert run("state(1); aside('a'); aside('b'); answer();")["waiting"] == 2
