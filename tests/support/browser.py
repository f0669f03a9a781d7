"""A headless browser that a test drives, and a server of a folder: as much of WebDriver as that takes."""

from __future__ import annotations

import base64
import functools
import http.server
import json
import shutil
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no network
)
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
ENTER, SPACE, LEFT, RIGHT, END = "\ue007", " ", "\ue012", "\ue014", "\ue010"


def installed() -> bool:
    """Is there a browser to drive?"""
    return bool(shutil.which("chromium") and shutil.which("chromedriver"))


class Browser:
    """One session."""

    def __init__(self, driver: str) -> None:
        self._driver = driver
        capabilities = {
            "goog:chromeOptions": {"binary": shutil.which("chromium"), "args": list(FLAGS)},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self._session = f"/session/{made['sessionId']}"

    def _call(self, verb: str, path: str, data: Any = None) -> Any:
        body = None if verb == "GET" else json.dumps({} if data is None else data).encode()
        asked = urllib.request.Request(self._driver + path, body, {"Content-Type": "application/json"}, method=verb)
        with urllib.request.urlopen(asked, timeout=300) as answer:
            return json.load(answer)["value"]

    def close(self) -> None:
        self._call("DELETE", self._session)

    def open(self, address: str) -> None:
        self._call("POST", f"{self._session}/url", {"url": address})

    def run(self, script: str, *arguments: Any) -> Any:
        """What a function body in JavaScript returns."""
        return self._call("POST", f"{self._session}/execute/sync", {"script": script, "args": arguments})

    def command(self, name: str, **parameters: Any) -> Any:
        """One of the browser's own protocol: sizes, colours, the media that it claims to be."""
        return self._call("POST", f"{self._session}/goog/cdp/execute", {"cmd": name, "params": parameters})

    def looks(self, width: int, height: int, scheme: str = "light") -> None:
        """Size of the window, light or dark."""
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def press(self, selector: str, keys: str) -> None:
        """Type into the element."""
        found = self._call("POST", f"{self._session}/element", {"using": "css selector", "value": selector})
        self._call("POST", f"{self._session}/element/{found[ELEMENT]}/value", {"text": keys})

    def wait(self, found: Callable[[], Any], seconds: float = 240) -> Any:
        """The first answer that is something."""
        end = time.monotonic() + seconds
        while not (answer := found()):
            if time.monotonic() > end:
                raise TimeoutError(self.run("return document.body.innerText")[:3000])
            time.sleep(0.2)
        return answer

    def errors(self) -> list[str]:
        """What the console said since the last time, warnings and worse."""
        lines = self._call("POST", f"{self._session}/se/log", {"type": "browser"})
        return [line["message"] for line in lines if line["level"] in ("SEVERE", "WARNING")]

    def picture(self, file: Path) -> None:
        """The whole page as PNG."""
        size = self.command("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.command("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nothing."""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of a folder."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


@contextmanager
def browsing() -> Iterator[Browser]:
    """A browser, which ends with the block."""
    process = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "started successfully on port" in line)
        browser = Browser(f"http://127.0.0.1:{line.split()[-1].rstrip('.')}")
        try:
            yield browser
        finally:
            browser.close()
    finally:
        process.terminate()
        process.wait()
