"""Sessions that are served, as browsers and scripts meet them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from fairopt.app.explorer import Session
from fairopt.app.explorer.server import Server


@contextmanager
def serving(session: Session) -> Iterator[Server]:
    """A server of a session, in a thread of its own."""
    with Server(session) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
