"""The local server: its own page only, JSON only, of bounded size, on the loopback; Ctrl-C stops it."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import webbrowser
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

import pytest

import fairopt as fo
from fairopt.app.cli import main
from fairopt.app.explorer import Session
from fairopt.app.explorer.server import LARGEST, Server
from fairopt.errors import DataError

from .conftest import serving

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Session(fo.papers.instance("drfh-fig1"))) as made:
        yield made


def cookie(server: Server) -> str:
    return f"fairopt-{server.server_port}={server.token}"


def send(server: Server, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str, Message]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=300)
    try:
        given = {"Cookie": cookie(server)} | {name.replace("_", "-"): text for name, text in headers.items()}
        connection.request(method, path, body, given)
        reply = connection.getresponse()
        return reply.status, reply.read().decode(), reply.headers
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("path", "part"), [("/", 'src="explorer.js"'), ("/explorer.js", "function render("), ("/explorer.css", ".fo-exp")]
)
def test_pages(server: Server, path: str, part: str) -> None:
    status, text, headers = send(server, "GET", path)
    assert (status, part in text) == (200, True)
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_an_answer_is_sent_at_once(server: Server) -> None:
    """Headers and body in one packet: a browser acknowledges headers alone 40 ms later, and the body would wait."""
    body = json.dumps({"ask": "start"}).encode()
    head = f"POST /ask HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\nContent-Type: application/json\r\n"
    head += f"Cookie: {cookie(server)}\r\n"
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=300) as connection:
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            headers, _, text = connection.recv(1 << 20).partition(b"\r\n\r\n")
        assert f"Content-Length: {len(text)}".encode() in headers
        assert json.loads(text)["source"]


def test_a_question(server: Server) -> None:
    body = json.dumps({"ask": "answer", "state": {"alpha": 3}}).encode()
    status, text, _ = send(server, "POST", "/ask", body, Content_Type="application/json; charset=utf-8")
    assert (status, json.loads(text)["mechanism"]) == (200, "alphaPF-VDS(alpha=3)")


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {"Host": "evil.example"}, 403),
        ("/", {"Host": "127.0.0.1:1"}, 403),
        ("/../pyproject.toml", {}, 404),
        ("/ask", {"Host": "evil.example", **JSON}, 403),
        ("/ask", {"Origin": "http://evil.example", **JSON}, 403),
        ("/ask", {"Origin": "null", **JSON}, 403),
        ("/ask", {"Content-Type": "text/plain"}, 415),
        ("/ask", {}, 415),
        ("/ask", {"Content-Length": str(LARGEST + 1), **JSON}, 413),
        ("/ask", {"Content-Length": "9" * 40, **JSON}, 413),
        ("/ask", {"Content-Length": "-5", **JSON}, 411),
    ],
)
def test_what_is_refused(server: Server, path: str, headers: dict[str, str], status: int) -> None:
    how = ("POST", path, b"{}") if path == "/ask" else ("GET", path)
    assert send(server, *how, **headers)[0] == status


@pytest.mark.parametrize("body", [b"{", b"[" * 100_000, b"\xff\xfe", b""])
def test_what_is_no_json(server: Server, body: bytes) -> None:
    assert send(server, "POST", "/ask", body, **JSON)[0] == 400


@pytest.mark.parametrize("path", ["/", "/explorer.js", "/explorer.css", "/nothing", "/ask"])
def test_other_accounts_of_the_machine_are_refused(server: Server, path: str) -> None:
    """Nothing is served without the token."""
    how = ("POST", path, b'{"ask": "start"}') if path == "/ask" else ("GET", path, None)
    ours = cookie(server)
    for wrong in ("", ours[:-1], f"{ours}x", ours.replace("-", "-1", 1), "\xe9"):
        status, text, _ = send(server, how[0], f"{path}?token={server.token[1:]}", how[2], Cookie=wrong, **JSON)
        assert (status, server.token in text) == (403, False)
    assert send(server, *how, Cookie=f"a=b; {ours}; c", **JSON)[0] == (404 if path == "/nothing" else 200)


def test_the_printed_address_brings_the_cookie(server: Server) -> None:
    status, _, headers = send(server, "GET", server.address.partition(str(server.server_port))[2], Cookie="")
    assert status == 200
    assert headers["Set-Cookie"] == f"{cookie(server)}; Path=/; HttpOnly; SameSite=Strict"


def test_no_list_of_processes_shows_the_token(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every account can read what a browser is started with: a file that only its owner reads leads to the page."""

    def look(address: str) -> None:
        page = Path(address.removeprefix("file://"))
        (printed,) = re.findall(r"http\S+token=\S+", capsys.readouterr().out)
        assert printed in page.read_text(encoding="utf-8")
        assert page.parent.stat().st_mode & 0o077 == 0
        raise KeyboardInterrupt

    monkeypatch.setattr(webbrowser, "open", look)
    assert main(["explore", "paper:drf-4.1"]) == 0


def test_loopback_only_and_a_port_that_is_taken(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    for port in (server.server_port, 99_999):
        with pytest.raises(DataError, match="choose another"):
            Server(server.session, port)


def test_control_c_stops_the_command() -> None:
    words = ["explore", "paper:drf-4.1", "--no-browser"]
    process = subprocess.Popen(
        [sys.executable, "-m", "fairopt", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background ignores it
    )  # fmt: skip
    assert process.stdout is not None
    lines = [process.stdout.readline(), process.stdout.readline()]
    assert re.match(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43} \(Ctrl-C stops\)", lines[1])
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0
    assert said == ""


@pytest.mark.parametrize("words", ["--out x.pdf", "--alpha much --no-browser", "--mechanism nobody --no-browser"])
def test_bad_options(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "paper:drf-4.1", *words.split()]) == 2
    assert capsys.readouterr().out == ""
