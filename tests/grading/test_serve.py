"""``attncourse serve`` shows a folder's book on this machine."""

import signal
import socket
import struct
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from attncourse.grading.errors import UserError
from attncourse.grading.serve import serve_folder

COMMAND = [sys.executable, "-m", "attncourse.grading.cli", "serve"]


@pytest.fixture
def book(tmp_path) -> Path:
    (tmp_path / "index.html").write_text("<h1>Attention</h1>")
    (tmp_path.parent / "secret.txt").write_text("not part of the book")
    return tmp_path


@contextmanager
def serving_process(book: Path, text: bool) -> Iterator[subprocess.Popen]:
    """Start the command as a shell does; a job in the background would ignore Ctrl-C."""
    process = subprocess.Popen(
        [*COMMAND, str(book), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=text,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_the_book_is_served_until_ctrl_c(book):
    with serving_process(book, text=True) as process:
        address = process.stdout.readline().split()[-1]
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address) as answer:
            assert answer.read() == b"<h1>Attention</h1>"
            assert answer.headers["Cache-Control"] == "no-cache"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{address}../secret.txt").close()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert (process.stdout.read(), process.stderr.read()) == ("", "")


def test_a_missing_page_is_answered_with_the_books_own(book):
    (book / "404.html").write_text("<h1>No such page</h1>")
    with serving_process(book, text=True) as process:
        address = process.stdout.readline().split()[-1]
        for method in ("GET", "HEAD"):
            request = urllib.request.Request(f"{address}book/nowhere.html", method=method)
            with pytest.raises(urllib.error.HTTPError, match="404") as caught:
                urllib.request.urlopen(request)
            answered = caught.value.read()
            caught.value.close()
            assert answered == (b"<h1>No such page</h1>" if method == "GET" else b"")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_closed_connections_print_nothing(book):
    """A browser closes its connection whenever its reader leaves a page, even while it loads."""
    (book / "large.js").write_bytes(bytes(30_000_000))
    with serving_process(book, text=False) as process:
        port = int(process.stdout.readline().rstrip(b"/\n").split(b":")[-1])
        for name in ("large.js", "missing.html", "large.js"):
            with socket.create_connection(("127.0.0.1", port)) as reader:
                reader.sendall(f"GET /{name} HTTP/1.0\r\n\r\n".encode())
                reader.recv(1)
                reader.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
            assert answer.read() == b"<h1>Attention</h1>"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert process.stderr.read() == b""


def test_a_folder_without_a_book_is_named(tmp_path):
    with pytest.raises(UserError, match=r"no book is in .*make book"):
        serve_folder(tmp_path, 0, print)


def test_a_port_that_is_taken_is_named(book):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=rf"port {port} .*--port 0"):
            serve_folder(book, port, print)
