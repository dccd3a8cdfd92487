"""Local HTTP server of the explorer, on the loopback interface, for one person and one cluster.

Every account of the machine can connect, so a request must present the token of this server: the first request in
its address, later requests in a cookie. Other pages in the same browser can send requests as well, so the Host header
must name this server (which excludes DNS rebinding), and questions must be JSON (which pages of other origins cannot
send).
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


#: Largest size of a request in bytes.
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
    """HTTP server for one session; `port=0` selects a free port.

    Raises
    ------
    DataError
        The port is in use, or not permitted.
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
        """Ignore connections that the browser closed before the response, and report other errors."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """Address with the token, which grants access."""
        return f"http://{HOST}:{self.server_port}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """Name of the cookie, which includes the port, since all ports of a host share their cookies."""
        return f"fairopt-{self.server_port}"

    @property
    def names(self) -> tuple[str, str]:
        """Values of the Host header that are accepted."""
        return f"{HOST}:{self.server_port}", f"localhost:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    # Timeout of idle connections, in seconds.
    timeout = 60.0
    protocol_version = "HTTP/1.1"
    # Headers and body are sent together: if the headers were sent first, the body would wait up to 40 ms for a delayed
    # acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Serve the page, its program or its style sheet."""
        if not self._admitted():
            return
        place = self.path.partition("?")[0]
        if place not in self.server.texts:
            self._send(404, "text/plain", "there is no such page")
            return
        self._send(200, *self.server.texts[place])

    def do_POST(self) -> None:
        """Reply to a request of the page; the reply to an invalid request is an error message."""
        if not self._admitted():
            return
        size = self.headers.get("Content-Length", "")
        if self.headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
            self._refuse(415, "requests must be of type application/json")
        elif self.path != "/ask":
            self._refuse(404, "there is no such page")
        elif not (size.isascii() and size.isdecimal()):
            self._refuse(411, "a request must state its length (Content-Length)")
        elif len(size) > 12 or int(size) > LARGEST:
            self._refuse(413, f"a request may have at most {LARGEST:,} bytes")
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
        """True if the host, the origin and the token of a request are accepted; otherwise reply with status 403."""
        server, origin = self.server, self.headers.get("Origin")
        if self.headers.get("Host") not in server.names or origin not in (
            None,
            *(f"http://{one}" for one in server.names),
        ):
            self._refuse(403, "this server answers only requests of its own page")
            return False
        given = [self.path.partition("?")[2].removeprefix("token=")]
        given += [one.strip().removeprefix(f"{server.cookie}=") for one in self.headers.get("Cookie", "").split(";")]
        if any(secrets.compare_digest(one.encode(), server.token.encode()) for one in given):
            return True
        self._refuse(403, "open the address that `fairopt explore` has printed, with its token")
        return False

    def _refuse(self, status: int, text: str) -> None:
        """Send an error and close the connection, without reading the rest of the request."""
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
        """Suppress the log of requests on the terminal."""
