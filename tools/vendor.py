"""The web libraries of the book: fetched once from npm, checked against the lock file, kept.

    python tools/vendor.py        fetches what is not there yet

`tools/web/package.json` names them, `tools/web/package-lock.json` pins each by version and hash
(`npm install --package-lock-only --omit-lockfile-registry-resolved` makes it anew). They lie in
the environment, in `web/NAME-VERSION/`. Node's package manager is not needed.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import shutil
import sys
import tarfile
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "tools" / "web" / "package-lock.json"
VENDOR_FOLDER = Path(sys.prefix) / "web"
REGISTRY = "https://registry.npmjs.org"


class VendorError(Exception):
    """A library could not be had. The message says why and what to do."""


def library(name: str) -> Path:
    """Return the folder of a library, fetched if it is not there."""
    entry = json.loads(LOCK.read_text(encoding="utf-8"))["packages"][f"node_modules/{name}"]
    folder = VENDOR_FOLDER / f"{name}-{entry['version']}"
    if not folder.exists():
        unpack(fetch(name, entry["version"], entry["integrity"]), folder)
    return folder


def fetch(name: str, version: str, integrity: str) -> bytes:
    """Return the library's archive, which has the hash that the lock file says."""
    registry = os.environ.get("NPM_CONFIG_REGISTRY")
    address = f"{(registry or REGISTRY).rstrip('/')}/{name}/-/{name.split('/')[-1]}-{version}.tgz"
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            data = answer.read()
    except (OSError, ValueError) as problem:
        raise VendorError(
            f"{name} {version} cannot be fetched from npm ({problem}): the book needs it once; "
            "behind a mirror, name it in NPM_CONFIG_REGISTRY"
        ) from None
    method, _, expected_digest = integrity.partition("-")
    actual_digest = base64.b64encode(hashlib.new(method, data).digest()).decode()
    if actual_digest != expected_digest:
        raise VendorError(
            f"{name} {version} as fetched is not what tools/web/package-lock.json pins: "
            f"expected {integrity}, got {method}-{actual_digest}"
        )
    return data


def unpack(archive: bytes, folder: Path) -> None:
    """Unpack an npm archive, whose files lie in one folder, to where it shall be found."""
    made = folder.with_name(f".{folder.name}.{os.getpid()}")
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as files:
        files.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        files.extractall(made)
    (inside,) = made.iterdir()
    try:
        inside.rename(folder)
    except OSError:  # another build was first
        if not folder.exists():
            raise
    shutil.rmtree(made)


def main() -> int:
    """Fetch the libraries of the book's tools; return 1 where that fails."""
    try:
        for name in ("mathjax", "axe-core"):
            print(f"{name}: {library(name)}")
    except VendorError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
