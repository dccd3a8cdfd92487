"""Headless Chromium by Selenium, for browser tests. On Debian: `apt-get install chromium chromium-driver`."""

from __future__ import annotations

import base64
import importlib.util
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


def missing() -> str:
    """Message on missing requirements; '' if all are installed."""
    if importlib.util.find_spec("selenium") is None:
        return "no selenium here (pip install selenium)"
    absent = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    return f"no {' and no '.join(absent)} here (Debian: apt-get install chromium chromium-driver)" if absent else ""


class Chromium:
    """Browser session, a context manager."""

    def __init__(self) -> None:
        from selenium.webdriver import Chrome, ChromeOptions, ChromeService

        options = ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for one in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "window-size=1200,900"):
            options.add_argument(f"--{one}")
        options.add_argument("--hide-scrollbars")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver: Chrome = Chrome(options, ChromeService(shutil.which("chromedriver")))
        self.open, self.run = self.driver.get, self.driver.execute_script

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        self.driver.quit()

    def wait(self, script: str, *arguments: Any, seconds: float = 60.0) -> Any:
        """Wait until a JavaScript function body returns a true value."""
        from selenium.common.exceptions import TimeoutException
        from selenium.webdriver.support.wait import WebDriverWait

        try:
            return WebDriverWait(self.driver, seconds, 0.02).until(lambda _: self.run(script, *arguments))
        except TimeoutException:
            raise TimeoutError(f"not in {seconds:g} s: {script}\n{self.errors()}") from None

    def cdp(self, command: str, **parameters: Any) -> Any:
        """Execute a command of the Chrome DevTools Protocol."""
        return self.driver.execute_cdp_cmd(command, parameters)

    def offline(self) -> None:
        """Disable the network."""
        self.cdp("Network.enable")
        self.cdp("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)

    def errors(self) -> list[str]:
        """Severe messages of the console since the last call."""
        return [one["message"] for one in self.driver.get_log("browser") if one["level"] in ("SEVERE", "WARNING")]

    def picture(self, path: Path) -> Path:
        """Screenshot of the whole page as PNG."""
        width, height = self.run("const e = document.documentElement; return [e.clientWidth, e.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))
        return path

    def tree(self) -> list[dict[str, Any]]:
        """Nodes of the accessibility tree that are not ignored: role, name, and whether they are focusable."""
        self.cdp("Accessibility.enable")
        nodes = []
        for node in self.cdp("Accessibility.getFullAXTree")["nodes"]:
            if not node.get("ignored"):
                focus = [one["value"].get("value") for one in node.get("properties", ()) if one["name"] == "focusable"]
                named = {key: node.get(key, {}).get("value", "") for key in ("role", "name")}
                nodes.append(named | {"focusable": any(focus)})
        return nodes


#: Condition that an answer is displayed, and no request is pending.
READY = """const e = document.querySelector(".fo-explorer");
return e && e.dataset.drawings && !e.classList.contains("busy")"""
