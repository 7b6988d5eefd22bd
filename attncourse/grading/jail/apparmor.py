"""An AppArmor profile that lets this Python, and no other program, make user namespaces."""

import os
import re
import shlex
import sys
from pathlib import Path

SETTING = "kernel/apparmor_restrict_unprivileged_userns"
NAME = "attncourse"
INSTALLED = f"/etc/apparmor.d/{NAME}"
PROFILE = """\
# Lets what this Python runs make user namespaces: attncourse locks submissions in them.
abi <abi/4.0>,
include <tunables/global>

profile {name} "{python}" flags=(unconfined) {{
  userns,
  include if exists <local/{name}>
}}
"""
PATTERN_SIGNS = re.compile(r'([\\*?\[\]{}^"])')  # in a profile's path, which is a pattern


def profile_text(python: str = sys.executable) -> str:
    """Return the profile for the program that ``python``, an interpreter or a link to it, is."""
    path = PATTERN_SIGNS.sub(r"\\\1", os.path.realpath(python))
    return PROFILE.format(name=NAME, python=path)


def write_profile(folder: Path) -> Path:
    """Write the profile for this interpreter into ``folder``; return its path."""
    path = folder / f"{NAME}.apparmor"
    path.write_text(profile_text(), encoding="utf-8")
    return path


def install_commands(profile: Path) -> list[str]:
    """Return the commands that put a profile in force, now and after each start."""
    return [
        f"sudo cp {shlex.quote(str(profile))} {INSTALLED}",
        f"sudo apparmor_parser -r {INSTALLED}",
    ]
