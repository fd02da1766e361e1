# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven through its DevTools protocol over two pipes."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from pathlib import Path
from typing import Any

PATIENCE_S = 60
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser() -> str | None:
    return next((path for path in map(shutil.which, NAMES) if path), None)


def high_pipe() -> tuple[int, int]:
    """A pipe whose ends are out of the way of 3 and 4."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 100) for end in ends)
    for end in ends:
        os.close(end)
    return high[0], high[1]


class Browser:
    """One window with one page. What the page says on its console is in `console`."""

    def __init__(self, program: str, profile: Path, width: int = 1440, height: int = 900) -> None:
        to_browser, self._write = high_pipe()
        self._read, from_browser = high_pipe()
        self.console: list[str] = []
        self.requests: list[str] = []
        self._number = 0
        self._buffer = b""
        self._events: list[dict[str, Any]] = []
        self._session = ""
        command = [
            program,
            "--headless=new",
            "--no-sandbox",  # tests may run as root
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--no-first-run",
            "--hide-scrollbars",
            f"--user-data-dir={profile}",
            "--remote-debugging-pipe",
            "about:blank",
        ]

        # Chromium reads from 3 and writes to 4.
        self._pid = os.posix_spawn(
            program,
            command,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, 1, 2),
                (os.POSIX_SPAWN_DUP2, to_browser, 3),
                (os.POSIX_SPAWN_DUP2, from_browser, 4),
            ],
            setsid=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._session = ""
            self._ask("Browser.close")
        except (OSError, EOFError, TimeoutError):
            pass
        os.close(self._write)
        os.close(self._read)
        deadline = time.monotonic() + 10
        while os.waitpid(self._pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                os.killpg(self._pid, signal.SIGKILL)
            time.sleep(0.02)

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self._read, 1 << 20)
            if not more:
                raise EOFError("the browser has gone")
            self._buffer += more
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        self._hear(answer)
        return answer

    def _hear(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(arg.get("value")) for arg in params["args"]))
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.console.append(str(details.get("exception", details).get("description", details)))
        elif method == "Log.entryAdded":
            self.console.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        if method:
            self._events.append(message)

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self._next(deadline)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _wait(self, method: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not any(event["method"] == method for event in self._events):
            self._next(deadline)

    def open(self, page: Path) -> None:
        self._events.clear()
        self.console.clear()
        self.requests.clear()
        self._ask("Page.navigate", url=page.resolve().as_uri())
        self._wait("Page.loadEventFired")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self._ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def resize(self, width: int, height: int, is_phone: bool = False) -> None:
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if is_phone else 1,
            mobile=is_phone,
        )

    def prefer(self, scheme: str) -> None:
        """'light' or 'dark', as the system would say."""
        self._ask(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def press(self, key: str) -> None:
        codes = {"Enter": (13, "\r"), "Tab": (9, ""), "Escape": (27, "")}
        codes |= {"ArrowLeft": (37, ""), "ArrowUp": (38, ""), "ArrowRight": (39, "")}
        codes |= {"ArrowDown": (40, ""), "Home": (36, ""), "End": (35, "")}
        code, text = codes.get(key, (ord(key[0].upper()), key))
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self._ask("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self._ask("Input.dispatchKeyEvent", type="keyUp", **common)

    def _middle(self, selector: str) -> tuple[float, float]:
        found = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " if (!e) return null; e.scrollIntoView({block: 'center'});"
            " const b = e.getBoundingClientRect();"
            " return [b.left + b.width / 2, b.top + b.height / 2]; })()"
        )
        assert found, f"there is no {selector}"
        return found[0], found[1]

    def hover(self, selector: str) -> None:
        x, y = self._middle(selector)
        self._ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector: str) -> None:
        x, y = self._middle(selector)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self._ask(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )

    def screenshot(self, path: Path, is_whole: bool = False) -> None:
        answer = self._ask("Page.captureScreenshot", captureBeyondViewport=is_whole, format="png")
        path.write_bytes(base64.b64decode(answer["data"]))

    def pdf(self) -> bytes:
        return base64.b64decode(self._ask("Page.printToPDF", printBackground=True)["data"])
