"""A JupyterLab of its own on the loopback, for the explorer in a notebook: a browser test, tools/explorer_pictures.py.

The server is the `jupyter-lab` of the path; the kernel is this Python with this checkout, so that JupyterLab may be
installed elsewhere. Nothing of a person's own Jupyter is read or written.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path

from chromium import Chromium

ROOT = Path(__file__).resolve().parent.parent
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def missing() -> str:
    """What is not installed, in words; empty where all is there."""
    if shutil.which("jupyter-lab") is None:
        return "no jupyter-lab here: pip install 'fairopt[lab]'"
    absent = [name for name in ("anywidget", "ipykernel") if find_spec(name) is None]
    return f"no {' and no '.join(absent)} here: pip install 'fairopt[notebook]' ipykernel" if absent else ""


class Lab:
    """A JupyterLab with one notebook; a context manager. `address` opens the notebook.

    Parameters
    ----------
    folder : an empty folder, for the notebook and all that Jupyter keeps
    cells : code
    """

    def __init__(self, folder: Path, cells: list[str]) -> None:
        (folder / "work").mkdir(parents=True)
        (folder / "work" / "explorer.ipynb").write_text(json.dumps(_notebook(cells)), encoding="utf-8")
        _kernel(folder / "data")
        news = folder / "settings" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
        news.parent.mkdir(parents=True)
        news.write_text('{"fetchNews": "false", "checkForUpdates": false}', encoding="utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        token = secrets.token_hex(16)
        own = {f"JUPYTER_{kind}_DIR": str(folder / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
        prefix = Path(sys.prefix, "share", "jupyter")  # the widgets of this Python, for a JupyterLab elsewhere
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                ["jupyter-lab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
                 "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--notebook-dir={folder / 'work'}",
                 f"--LabApp.user_settings_dir={folder / 'settings'}", f"--LabApp.workspaces_dir={folder / 'spaces'}",
                 "--LabApp.extension_manager=readonly"],
                env=os.environ | own | {"JUPYTER_PATH": str(prefix)}, stdout=log, stderr=log,
            )  # fmt: skip
        self.host = f"http://127.0.0.1:{port}"
        self.address = f"{self.host}/doc/tree/explorer.ipynb?token={token}"

    def __enter__(self) -> Lab:
        end = time.monotonic() + 120
        while self.process.poll() is None and time.monotonic() < end:
            try:
                with _OPENER.open(f"{self.host}/api", timeout=10):
                    return self
            except (OSError, urllib.error.URLError):
                time.sleep(0.2)
        self._end()
        raise TimeoutError(f"JupyterLab does not answer:\n{self.log.read_text()[-2000:]}")

    def __exit__(self, *_: object) -> None:
        self._end()

    def run(self, browser: Chromium) -> None:
        """Open the notebook and run its first cell."""
        browser.open(self.address)
        browser.wait(_IDLE, seconds=180)
        browser.click('[data-command="notebook:run-cell-and-select-next"]')

    def _end(self) -> None:
        self.process.terminate()  # its kernels too: the server ends them
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()


#: The notebook has its kernel, which waits for something to do.
_IDLE = """return document.body.innerText.includes("| Idle")"""


def _notebook(cells: list[str]) -> dict[str, object]:
    """A notebook, format 4.5."""
    made = [
        {"cell_type": "code", "id": f"cell-{k}", "metadata": {}, "execution_count": None, "outputs": [], "source": text}
        for k, text in enumerate(cells)
    ]
    kernel = {"display_name": "fairopt", "language": "python", "name": "fairopt"}
    return {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _kernel(data: Path) -> None:
    """The kernel: this Python, with this checkout."""
    folder = data / "kernels" / "fairopt"
    folder.mkdir(parents=True)
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    spec = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "fairopt",
        "language": "python",
        "env": {"PYTHONPATH": paths},
    }
    (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
