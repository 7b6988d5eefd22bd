"""Shows the built book to a browser on this machine."""

import errno
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from attncourse.grading.errors import UserError


class Quiet(SimpleHTTPRequestHandler):
    """Serves the files of one folder, and prints nothing of each request.

    A file's type goes by its name alone: Windows' registry may call scripts plain text, which a
    browser does not run.
    """

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".css": "text/css",
        ".html": "text/html",
        ".js": "text/javascript",
        ".json": "application/json",
        ".svg": "image/svg+xml",
    }

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing about a request."""
        pass

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send the book's own page for a missing one, as on the web.

        Other errors are sent in plain words.
        """
        page = Path(self.directory) / "404.html"
        if code != HTTPStatus.NOT_FOUND or not page.is_file():
            return super().send_error(code, message, explain)
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(page.read_bytes())
        return None

    def end_headers(self) -> None:
        """Send the headers, with one that keeps browsers from storing the page."""
        self.send_header("Cache-Control", "no-cache")  # the book may be built again meanwhile
        super().end_headers()


class Server(ThreadingHTTPServer):
    """A server that is not bothered by lost connections.

    Browsers hang up before a page is whole, and Ctrl-C closes what is being answered. Neither is
    worth the traceback that the library prints from each answer's thread.
    """

    allow_reuse_address = sys.platform != "win32"  # there a second server would get the same port

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print an error, unless the browser has hung up."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def serve_folder(folder: Path, port: int, started: Callable[[str], None]) -> None:
    """Serve a folder to this machine alone until Ctrl-C; ``started`` is called with the address.

    Port 0 stands for any that is free. Raises ``UserError`` if no book is in the folder, or the
    port cannot be had.
    """
    if not (folder / "index.html").is_file():
        raise UserError(f"no book is in {folder}: build it with `make book`, or name its folder")
    try:
        server = Server(("127.0.0.1", port), partial(Quiet, directory=str(folder)))
    except OSError as problem:
        is_taken = problem.errno in (errno.EADDRINUSE, errno.EACCES)
        advice = ": name another one, or --port 0 for any that is free" if is_taken else ""
        raise UserError(f"port {port} cannot be used ({problem.strerror}){advice}") from None
    with server, suppress(KeyboardInterrupt):
        started(f"http://127.0.0.1:{server.server_port}/")
        server.serve_forever()
