"""Shows the built book to a browser on this machine."""

import errno
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from attncourse.grading.errors import UserError


class Quiet(SimpleHTTPRequestHandler):
    """Answers with files of one folder, and says nothing of each."""

    def log_message(self, *about: object) -> None:
        pass

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")  # the book may be built again meanwhile
        super().end_headers()


def serve(folder: Path, port: int, started: Callable[[str], None]) -> None:
    """Serves a folder on this machine alone until it is interrupted; ``started`` gets the address.

    Port 0 stands for any that is free. Raises ``UserError`` where no book is in the folder, or the
    port cannot be had.
    """
    if not (folder / "index.html").is_file():
        raise UserError(f"no book is in {folder}: build it with `make book`, or name its folder")
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), partial(Quiet, directory=str(folder)))
    except OSError as problem:
        taken = problem.errno in (errno.EADDRINUSE, errno.EACCES)
        advice = ": name another one, or --port 0 for any that is free" if taken else ""
        raise UserError(f"port {port} cannot be used ({problem.strerror}){advice}") from None
    with server:
        started(f"http://127.0.0.1:{server.server_port}/")
        with suppress(KeyboardInterrupt):
            server.serve_forever()
