"""A real browser without a screen, driven by its own remote protocol: CDP for Chromium, WebDriver BiDi for Firefox.

Needs no further program. Knows browsers; does not know the page.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from websockets.sync.client import ClientConnection, connect

from tests.waiting import PATIENCE_SECS, wait_until

__all__ = ["BROWSERS", "Browser", "Chromium", "Firefox"]

_MOST_BYTES = 64 << 20
_KEYS = {
    "ArrowRight": ("ArrowRight", 39, "\ue014"),
    "ArrowLeft": ("ArrowLeft", 37, "\ue012"),
    "ArrowDown": ("ArrowDown", 40, "\ue015"),
    "ArrowUp": ("ArrowUp", 38, "\ue013"),
    "Home": ("Home", 36, "\ue011"),
    "End": ("End", 35, "\ue010"),
    "Tab": ("Tab", 9, "\ue004"),
    "Enter": ("Enter", 13, "\ue006"),
    "Escape": ("Escape", 27, "\ue00c"),
}


class Browser:
    """A browser with one page.

    Attributes:
        requests: Addresses that the page asked for, in their order; those of the address bar first.
        errors: What was written to the console as an error, and errors that nobody caught.
    """

    program = ""

    def __init__(self, folder: Path, *, width: int = 1280, height: int = 720) -> None:
        self.requests: list[str] = []
        self.errors: list[str] = []
        self._size = width, height
        self._folder = folder
        self._number = 0
        self._log = (folder / "browser.log").open("wb")
        arguments = [str(shutil.which(self.program)), *self._arguments(folder, width, height)]
        environment = {**os.environ, "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)}
        self._process = subprocess.Popen(
            arguments,
            stdout=self._log,
            stderr=self._log,
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        self._line: ClientConnection | None = None
        self._stack = ExitStack()
        try:
            wait_until(
                lambda: bool(self._address()) or self._process.poll() is not None,
                "the browser listens",
            )
            assert self._process.poll() is None, (folder / "browser.log").read_text()[-2000:]
            self._line = self._stack.enter_context(
                connect(
                    self._address(),
                    max_size=_MOST_BYTES,
                    compression=None,
                    ping_interval=None,
                    proxy=None,
                )
            )
            self._begin()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser and all its processes."""
        self._stack.close()
        # Its own session: nobody else's processes are in it.
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()

    # ------------------------------------------------------------------- for tests

    def open(self, address: str) -> None:
        """Open an address and wait until the page is ready."""
        self._navigate(address)
        self.wait("document.documentElement?.dataset.ready === 'yes'")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        wait_until(
            lambda: self.evaluate(f"Boolean({condition})") is True, condition, rest_secs=0.02
        )

    def evaluate(self, expression: str) -> Any:
        """The value of an expression, which may be a promise, as JSON."""
        wrapped = f"(async () => JSON.stringify((await ({expression})) ?? null))()"
        return json.loads(self._evaluate(wrapped))

    def press(self, key: str, *, alt: bool = False) -> None:
        """Press a key, as a user does."""
        raise NotImplementedError

    def picture(self, path: Path) -> None:
        """Write what is seen as PNG."""
        raise NotImplementedError

    # ------------------------------------------------------------------- each browser's own

    @staticmethod
    def _arguments(folder: Path, width: int, height: int) -> list[str]:
        raise NotImplementedError

    def _address(self) -> str:
        raise NotImplementedError

    def _begin(self) -> None:
        raise NotImplementedError

    def _navigate(self, address: str) -> None:
        raise NotImplementedError

    def _evaluate(self, expression: str) -> str:
        raise NotImplementedError

    def _event(self, message: dict[str, Any]) -> None:
        raise NotImplementedError

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the browser's protocol, and return its result."""
        assert self._line is not None
        self._number += 1
        self._line.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._line.recv(timeout=PATIENCE_SECS))
            if message.get("id") == self._number:
                assert "error" not in message, f"{method}: {message}"
                result: dict[str, Any] = message["result"]
                return result
            self._event(message)


class Chromium(Browser):
    """Chromium."""

    program = "chromium"

    @staticmethod
    def _arguments(folder: Path, width: int, height: int) -> list[str]:
        return [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--ignore-certificate-errors",
            "--remote-debugging-port=0",
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={width},{height}",
            "about:blank",
        ]

    def _address(self) -> str:
        file = self._folder / "profile" / "DevToolsActivePort"
        lines = file.read_text().splitlines() if file.is_file() else []
        return f"ws://127.0.0.1:{lines[0]}{lines[1]}" if len(lines) == 2 else ""

    def _begin(self) -> None:
        self._session = ""
        self.select(self.tab())

    def tab(self) -> str:
        """Open a further page; `select` chooses the one that commands are for."""
        self._session = ""
        found = self.command("Target.createTarget", url="about:blank", newWindow=True)
        attached = self.command("Target.attachToTarget", targetId=found["targetId"], flatten=True)
        session: str = attached["sessionId"]
        self.select(session)
        for method in ("Page.enable", "Runtime.enable", "Network.enable", "Log.enable"):
            self.command(method)
        width, height = self._size
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 700,
        )
        return session

    def select(self, tab: str) -> None:
        """Choose the page that commands are for."""
        self._session = tab

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command to the page, or to the browser while there is no page."""
        assert self._line is not None
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._line.send(json.dumps(message))
        while True:
            answer = json.loads(self._line.recv(timeout=PATIENCE_SECS))
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer}"
                result: dict[str, Any] = answer["result"]
                return result
            self._event(answer)

    def _event(self, message: dict[str, Any]) -> None:
        what, told = message.get("method"), message.get("params", {})
        if what == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif what == "Network.webSocketCreated":
            self.requests.append(told["url"])
        elif what == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(told["exceptionDetails"]))
        elif what == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.errors.append(told["entry"]["text"])

    def _navigate(self, address: str) -> None:
        self.command("Page.navigate", url=address)

    def _evaluate(self, expression: str) -> str:
        result = self.command(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        value: str = result["result"]["value"]
        return value

    def press(self, key: str, *, alt: bool = False) -> None:
        """Press a key."""
        name, number, _ = _KEYS.get(key, (key, ord(key.upper()[0]), key))
        told: dict[str, Any] = {"key": name, "windowsVirtualKeyCode": number, "modifiers": int(alt)}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 and not alt else "")
        self.command(
            "Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **told
        )
        self.command("Input.dispatchKeyEvent", type="keyUp", **told)

    def picture(self, path: Path) -> None:
        """Write a picture."""
        data = self.command("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))


class Firefox(Browser):
    """Firefox.

    Attributes:
        accepts_any_certificate: Whether a server's own certificate is accepted, as by a user who was asked.
    """

    program = "firefox-esr"
    accepts_any_certificate = True

    @staticmethod
    def _arguments(folder: Path, width: int, height: int) -> list[str]:
        profile = folder / "profile"
        profile.mkdir()
        quiet = {
            "app.update.enabled": False,
            "browser.shell.checkDefaultBrowser": False,
            "browser.startup.homepage_override.mstone": "ignore",
            "datareporting.policy.dataSubmissionEnabled": False,
            "network.captive-portal-service.enabled": False,
            "network.connectivity-service.enabled": False,
            "remote.active-protocols": 1,
            "toolkit.telemetry.enabled": False,
        }
        lines = [
            f"user_pref({json.dumps(key)}, {json.dumps(value)});" for key, value in quiet.items()
        ]
        (profile / "user.js").write_text("\n".join(lines))
        return [
            "--headless",
            "--no-remote",
            "--remote-debugging-port=0",
            "--profile",
            str(profile),
            f"--width={width}",
            f"--height={height}",
        ]

    def _address(self) -> str:
        text = (self._folder / "browser.log").read_text(errors="replace")
        found = re.search(r"WebDriver BiDi listening on (ws://\S+)", text)
        return f"{found[1]}/session" if found else ""

    def _begin(self) -> None:
        wanted = {"acceptInsecureCerts": self.accepts_any_certificate}
        self.command("session.new", capabilities={"alwaysMatch": wanted})
        self.command("session.subscribe", events=["network.beforeRequestSent", "log.entryAdded"])
        tree = self.command("browsingContext.getTree")
        self._context = tree["contexts"][0]["context"]
        self.command("browsingContext.activate", context=self._context)
        width, height = self._size
        self.command(
            "browsingContext.setViewport",
            context=self._context,
            viewport={"width": width, "height": height},
        )

    def _event(self, message: dict[str, Any]) -> None:
        told = message.get("params", {})
        if message.get("method") == "network.beforeRequestSent":
            self.requests.append(told["request"]["url"])
        elif message.get("method") == "log.entryAdded" and told.get("level") == "error":
            self.errors.append(str(told.get("text")))

    def _navigate(self, address: str) -> None:
        self.command(
            "browsingContext.navigate", context=self._context, url=address, wait="complete"
        )

    def _evaluate(self, expression: str) -> str:
        result = self.command(
            "script.evaluate",
            expression=expression,
            target={"context": self._context},
            awaitPromise=True,
        )
        assert result["type"] == "success", result
        value: str = result["result"]["value"]
        return value

    def press(self, key: str, *, alt: bool = False) -> None:
        """Press a key."""
        value = _KEYS.get(key, ("", 0, key))[2]
        held = [{"type": "keyDown", "value": "\ue00a"}] if alt else []
        freed = [{"type": "keyUp", "value": "\ue00a"}] if alt else []
        actions = [
            *held,
            {"type": "keyDown", "value": value},
            {"type": "keyUp", "value": value},
            *freed,
        ]
        self.command(
            "input.performActions",
            context=self._context,
            actions=[{"type": "key", "id": "keyboard", "actions": actions}],
        )

    def picture(self, path: Path) -> None:
        """Write a picture."""
        data = self.command("browsingContext.captureScreenshot", context=self._context)["data"]
        path.write_bytes(base64.b64decode(data))


BROWSERS: dict[str, type[Browser]] = {"chromium": Chromium, "firefox": Firefox}
