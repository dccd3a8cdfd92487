"""Chromium without a window, by the WebDriver protocol of chromedriver: HTTP and JSON, no library.

For browser tests (tests/explorer). On Debian: `apt-get install chromium chromium-driver`.
"""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

#: Proxies of the environment are for other hosts.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def binary() -> str | None:
    """Chromium, or Chrome."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def missing() -> str:
    """What is not installed, in words; empty where all is there."""
    absent = [
        name for name, path in (("chromium", binary()), ("chromedriver", shutil.which("chromedriver"))) if not path
    ]
    return f"no {' and no '.join(absent)} here (Debian: apt-get install chromium chromium-driver)" if absent else ""


class Chromium:
    """One browser; a context manager."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.process = subprocess.Popen(
            ["chromedriver", f"--port={port}", "--log-level=OFF"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.base = f"http://127.0.0.1:{port}"
        try:
            self._wait_for_driver()
            arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                         "--window-size=1200,900", "--hide-scrollbars"]  # fmt: skip
            made = self._call(
                "POST",
                "/session",
                {
                    "capabilities": {
                        "alwaysMatch": {
                            "goog:chromeOptions": {"args": arguments, "binary": binary()},
                            "goog:loggingPrefs": {"browser": "ALL"},
                        }
                    }
                },
            )
        except BaseException:
            self._end()
            raise
        self.base += f"/session/{made['sessionId']}"

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._call("DELETE", "")
        finally:
            self._end()

    def open(self, address: str) -> None:
        """Go to an address."""
        self._call("POST", "/url", {"url": address})

    def run(self, script: str, *arguments: Any) -> Any:
        """The value that a function's body returns."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script: str, *arguments: Any, seconds: float = 60.0) -> Any:
        """Wait until a function's body returns something true."""
        end = time.monotonic() + seconds
        while not (value := self.run(script, *arguments)):
            if time.monotonic() > end:
                raise TimeoutError(f"not in {seconds:g} s: {script}\n{self.errors()}")
            time.sleep(0.02)
        return value

    def cdp(self, command: str, **parameters: Any) -> Any:
        """A command of Chrome's own protocol."""
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def offline(self) -> None:
        """Cut the network off."""
        self.cdp("Network.enable")
        self.cdp("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)

    def errors(self) -> list[str]:
        """What the console says that is severe, since the last call."""
        return [
            one["message"]
            for one in self._call("POST", "/se/log", {"type": "browser"})
            if one["level"] in ("SEVERE", "WARNING")
        ]

    def picture(self, path: Path) -> Path:
        """A PNG of the whole page."""
        width, height = self.run("const e = document.documentElement; return [e.clientWidth, e.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))
        return path

    def tree(self) -> list[dict[str, Any]]:
        """Nodes of the accessibility tree that are not ignored: role, name, and whether they can have the focus."""
        self.cdp("Accessibility.enable")
        nodes = []
        for node in self.cdp("Accessibility.getFullAXTree")["nodes"]:
            if not node.get("ignored"):
                focus = [one["value"].get("value") for one in node.get("properties", ()) if one["name"] == "focusable"]
                named = {key: node.get(key, {}).get("value", "") for key in ("role", "name")}
                nodes.append(named | {"focusable": any(focus)})
        return nodes

    def _wait_for_driver(self) -> None:
        for _ in range(300):
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except OSError:
                time.sleep(0.05)
        raise TimeoutError("chromedriver does not answer")

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with _OPENER.open(request, timeout=120) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def _end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


def reduced(path: Path, colours: int = 128) -> Path:
    """A picture with so many colours, a third as large; for docs/."""
    from PIL import Image

    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(colours, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
    return path


#: An answer is shown, and none is on its way.
READY = """const e = document.querySelector(".fo-explorer");
return e && e.dataset.drawings && !e.classList.contains("busy")"""
