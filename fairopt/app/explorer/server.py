"""A local page: the standard library's HTTP server on the loopback, for one person and one cluster.

Every account of the machine can connect, so a request must bring the token of this server: in the address that is
opened first, in a cookie afterwards. Whoever runs in another page of the same browser can send requests here, too: a
request must name this host (so that no foreign name that resolves to 127.0.0.1 is served), and questions must be JSON,
which foreign pages may not send.
"""

from __future__ import annotations

import json
import secrets
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ...base.errors import DataError
from .page import program, served, style
from .session import Session

HOST = "127.0.0.1"


#: Bytes of a question.
LARGEST = 1_000_000


_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Server(ThreadingHTTPServer):
    """Serves one session; `port=0` takes any that is free.

    Raises
    ------
    DataError
        The port is taken, or may not be used.
    """

    daemon_threads = True

    def __init__(self, session: Session, port: int = 0) -> None:
        self.session, self.lock, self.token = session, threading.Lock(), secrets.token_urlsafe(32)
        self.texts = {
            "/": ("text/html", served(session.source)),
            "/explorer.js": ("text/javascript", program()),
            "/explorer.css": ("text/css", style()),
        }
        try:
            super().__init__((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise DataError(f"port {port}: {why}; choose another with --port, or leave it out") from None

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a page that was closed while its answer was on the way."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """The address to open; whoever knows it is served."""
        return f"http://{HOST}:{self.server_port}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """Its name: cookies of all ports of a host are in one jar."""
        return f"fairopt-{self.server_port}"

    @property
    def names(self) -> tuple[str, str]:
        """Hosts that requests may name."""
        return f"{HOST}:{self.server_port}", f"localhost:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    # Seconds that a connection may be idle.
    timeout = 60.0
    protocol_version = "HTTP/1.1"
    # An answer is one packet: a browser that has headers alone acknowledges them 40 ms later, and the rest would wait.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """A page, its module or its style."""
        if not self._admitted():
            return
        place = self.path.partition("?")[0]
        if place not in self.server.texts:
            self._send(404, "text/plain", "there is no such page")
            return
        self._send(200, *self.server.texts[place])

    def do_POST(self) -> None:
        """A question; bad ones are answered in words."""
        if not self._admitted():
            return
        size = self.headers.get("Content-Length", "")
        if self.headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
            self._refuse(415, "questions are application/json")
        elif self.path != "/ask":
            self._refuse(404, "there is no such page")
        elif not (size.isascii() and size.isdecimal()):
            self._refuse(411, "a question says how long it is")
        elif len(size) > 12 or int(size) > LARGEST:
            self._refuse(413, f"a question has at most {LARGEST:,} bytes")
        else:
            self._answer(self.rfile.read(int(size)))

    def _answer(self, text: bytes) -> None:
        try:
            question = json.loads(text)
        except (ValueError, RecursionError):
            self._refuse(400, "that is not JSON")
            return
        with self.server.lock:
            reply = self.server.session.reply(question)
        self._send(200, "application/json", json.dumps(reply, allow_nan=False))

    def _admitted(self) -> bool:
        """True if a request names this host, comes from no other page, and has the token."""
        server, origin = self.server, self.headers.get("Origin")
        if self.headers.get("Host") not in server.names or origin not in (
            None,
            *(f"http://{one}" for one in server.names),
        ):
            self._refuse(403, "this server answers its own page only")
            return False
        given = [self.path.partition("?")[2].removeprefix("token=")]
        given += [one.strip().removeprefix(f"{server.cookie}=") for one in self.headers.get("Cookie", "").split(";")]
        if any(secrets.compare_digest(one.encode(), server.token.encode()) for one in given):
            return True
        self._refuse(403, "open the address that `fairopt explore` has printed, with its token")
        return False

    def _refuse(self, status: int, text: str) -> None:
        """An error; what else the request holds is not read."""
        self.close_connection = True
        self._send(status, "application/json", json.dumps({"error": text, "where": ""}))

    def _send(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        if status == 200:
            self.send_header(
                "Set-Cookie", f"{self.server.cookie}={self.server.token}; Path=/; HttpOnly; SameSite=Strict"
            )
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: the terminal is the person's."""
