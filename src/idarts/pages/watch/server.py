"""A small read-only web server for this machine alone.

waitress is the server: pure Python without dependencies, kept by the Pylons project, made to face the network, which
Python's own http.server is not. Our part is one WSGI function, `Server.answer`, which checks every request:

- it listens on 127.0.0.1, and every address holds a random token;
- the Host header must name this machine, or another site's name could be pointed here (DNS rebinding);
- an Origin header must be our own;
- GET and HEAD only. No part of an address names a file: a run has a number, and other addresses do not exist.
"""

import logging
import re
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from idarts.errors import InputError
from idarts.files import utf8
from idarts.pages.template import policy, require_jinja
from idarts.pages.watch.site import Site

HOST = "127.0.0.1"
_ADDRESS = re.compile(r"/(?P<token>[\w-]{1,100})/(?:(?P<key>[0-9]{1,6})/)?(?P<news>news)?")
_TICK = re.compile("[0-9]{1,15}")
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # an address holds the token
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
Start = Callable[[str, list[tuple[str, str]]], object]
Answer = tuple[str, str, bytes]  # status, content type, content


class Server:
    """Pages of runs at `url`; `run` serves them until Ctrl-C. Port 0 takes any free one."""

    def __init__(self, folders: Iterable[Path], port: int = 0) -> None:
        require_jinja()
        from waitress import create_server  # noqa: PLC0415 (an extra)

        logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # a browser that asks often is no problem
        self.site, self.token = Site(list(folders)), secrets.token_urlsafe()
        try:
            self._server: Any = create_server(
                self.answer, host=HOST, port=port, threads=4, ident=None, max_request_body_size=1024
            )
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"port {port} cannot be used: {reason}; choose another with --port") from None
        self.port: int = self._server.effective_port
        self._names = {f"{name}:{self.port}" for name in (HOST, "localhost")}
        self.url = f"http://{HOST}:{self.port}/{self.token}/{self.site.start}"

    def run(self) -> None:
        """Serve until Ctrl-C."""
        try:
            self._server.run()
        finally:
            self._server.close()

    def answer(self, request: dict[str, Any], start: Start) -> list[bytes]:
        """The WSGI application."""
        status, kind, body = self._answer(request)
        frames = "; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
        headers = {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Content-Security-Policy": policy(live=True) + frames,
            **_HEADERS,
            **({"Allow": "GET, HEAD"} if status.startswith("405") else {}),
        }
        start(status, list(headers.items()))
        return [] if request["REQUEST_METHOD"] == "HEAD" else [body]

    def _answer(self, request: dict[str, Any]) -> Answer:
        address = _ADDRESS.fullmatch(request.get("PATH_INFO", ""))
        if refusal := self._refusal(request, address["token"] if address else ""):
            return refusal
        if address is None or (address["key"] and address["key"] not in self.site):
            return _plain("404 Not Found", "there is no such run")
        if address["news"]:
            after = parse_qs(request.get("QUERY_STRING", "")).get("after", ["0"])[0]
            tick = int(after) if _TICK.fullmatch(after) else 0
            return "200 OK", "application/json", self.site.news(tick, address["key"])
        return "200 OK", "text/html", utf8(self.site.page(address["key"]))

    def _refusal(self, request: dict[str, Any], token: str) -> Answer | None:
        if request.get("HTTP_HOST", "").lower() not in self._names:
            return _plain("403 Forbidden", f"only http://{HOST}:{self.port} is served here")
        origin = request.get("HTTP_ORIGIN")
        if origin is not None and origin.lower() not in {f"http://{name}" for name in self._names}:
            return _plain("403 Forbidden", "requests from other sites are refused")
        if request["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return _plain("405 Method Not Allowed", "these pages can only be read")
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return _plain("403 Forbidden", "open the address that `idarts watch` printed: it has a random token")
        return None


def _plain(status: str, reason: str) -> Answer:
    return status, "text/plain", f"{reason}\n".encode()
