"""The command line, called in this process."""

import subprocess


def refuses(done: subprocess.CompletedProcess, *words: str) -> None:
    """Asserts one line on standard error that has these words, and exit status 2."""
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for word in words:
        assert word in done.stderr
