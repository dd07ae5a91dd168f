"""Pages in Chromium, by its DevTools protocol through a pipe: real input events, and no driver or package."""

import base64
import json
import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not on PATH (Debian: apt install chromium)")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe"),
]
KEYS = {"PageUp": 33, "ArrowRight": 39, "ArrowLeft": 37, "End": 35, "Home": 36, "Tab": 9, "Escape": 27}


class Browser:
    """One Chromium with one tab; it reads commands from file 3 and writes answers and events to file 4."""

    def __init__(self, profile):
        (theirs_in, self.write), (self.read, theirs_out) = os.pipe(), os.pipe()
        command = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self.process = subprocess.Popen(
            ["bash", "-c", command, "bash", CHROMIUM, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.number, self.rest, self.events, self.session = 0, b"", [], None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method, **parameters):
        """A command's result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self.number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _next(self):
        while b"\0" not in self.rest:
            part = os.read(self.read, 1 << 20)
            assert part, "Chromium has ended"
            self.rest += part
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def open(self, path, width=1280, height=900, dark=False, scripts=True):
        """Load a file, or an address, as it is, its content policy included."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Emulation.setScriptExecutionDisabled", value=not scripts)
        self._load("about:blank")  # ends the requests of the page before: their errors are not this page's
        self._load(path if isinstance(path, str) else path.as_uri())
        return self

    def _load(self, address):
        self.events.clear()
        self.send("Page.navigate", url=address)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def run(self, script):
        """The value of a JavaScript expression."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def problems(self):
        """Errors of the page: exceptions, and what its policy refused."""
        known = {"Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"}
        return [event["params"] for event in self.events if event.get("method") in known]

    def requests(self):
        """Addresses that the page asked for, except itself and data."""
        asked = [
            event["params"]["request"] for event in self.events if event.get("method") == "Network.requestWillBeSent"
        ]
        return [one["url"] for one in asked if not one["url"].startswith(("data:", "file:"))]

    def mouse(self, kind, x, y, buttons=0, clicks=0):
        """A pointer event at a place of the window; kind is moved, pressed or released."""
        button = "left" if kind != "moved" or buttons else "none"
        name = f"mouse{kind.capitalize()}"
        where = {"x": x, "y": y, "button": button, "buttons": buttons, "clickCount": clicks}
        self.send("Input.dispatchMouseEvent", type=name, **where)

    def drag(self, start, end, y):
        """Press at one place, move, and release at another."""
        self.mouse("moved", start, y)
        self.mouse("pressed", start, y, 1, 1)
        self.mouse("moved", (start + end) / 2, y, 1)
        self.mouse("moved", end, y, 1)
        self.mouse("released", end, y, 0, 1)

    def press(self, key):
        """A key, pressed and released."""
        code = KEYS.get(key, ord(key[0]))
        text = {"text": key} if len(key) == 1 else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def screenshot(self, path, whole=True):
        """A picture of the page, for people."""
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self):
        """End this Chromium."""
        self.session = None
        self.send("Browser.close")
        self.process.wait(timeout=20)
        os.close(self.write)
        os.close(self.read)


@contextmanager
def chromium(profile):
    """A browser for a block of code."""
    made = Browser(profile)
    try:
        yield made
    finally:
        try:
            made.close()
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            made.process.kill()


MEASURED = """(() => {{ const box = (one) => one.getBoundingClientRect();
const all = (selector) => [...document.querySelectorAll(selector)];
return {{ width: innerWidth, scroll: document.documentElement.scrollWidth, {} }} }})()"""


def measure(browser, script):
    """The values of a JavaScript object's fields on the open page."""
    return browser.run(MEASURED.format(script))
