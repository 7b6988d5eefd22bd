"""What this machine offers for grading: the jail's layers, the packages, cores and memory."""

from importlib import metadata
from pathlib import Path

from rich.table import Table
from rich.text import Text

from attncourse.grading.errors import UserError
from attncourse.grading.jail import apparmor
from attncourse.grading.jail.layers import PROTECTS, Layer, is_apparmor_restricting, is_in_container
from attncourse.grading.machine import LANE_MB, available_mb, choose_lanes, usable_cores
from attncourse.grading.report import count
from attncourse.grading.results.terminal import empty_table

PACKAGES = {"torch": "", "nbgrader": "pip install 'attncourse[grade]'"}


def layer_table(layers: list[Layer]) -> Table:
    """Return a table with a row for each layer: whether it holds, what it is for, what to do."""
    table = empty_table("layer", "here", "what it is for")
    for layer in layers:
        lines = [PROTECTS[layer.name]]
        if not layer.in_force:
            details = {"found": layer.detail, "to do": layer.remedy}
            lines += [f"{part}: {text}" for part, text in details.items() if text]
        style = "green" if layer.in_force else "bold red" if layer.required else "yellow"
        state = "in force" if layer.in_force else "missing"
        table.add_row(Text(layer.name), Text(state, style=style), Text("\n".join(lines)))
    return table


def machine_table() -> Table:
    """Return a table of packages that grading uses, of cores, and of memory for each lane."""
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 1))
    for name, remedy in PACKAGES.items():
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            installed = f"missing{': ' if remedy else ''}{remedy}"
        table.add_row(name, Text(installed))
    table.add_row("cores", str(usable_cores()))
    table.add_row("memory", Text(memory_line()))
    return table


def memory_line() -> str:
    """Return how much memory is free, and how much of it each lane would get."""
    available = available_mb()
    if available is None:
        return "unknown"
    try:
        lanes = choose_lanes(0)
    except UserError as error:
        return str(error)
    each = f"{available // lanes} MB for each of {count(lanes, 'lane')}"
    return f"{each}; grading counts {LANE_MB} MB for one"


def profile_lines(layers: list[Layer]) -> list[str]:
    """Write the AppArmor profile if that is missing; return what to do with it, in lines."""
    if (
        is_in_container()
        or not is_apparmor_restricting()
        or all(layer.in_force for layer in layers)
    ):
        return []
    lines = ["", "AppArmor keeps programs without a profile from user namespaces."]
    try:
        profile = apparmor.write_profile(Path.cwd())
    except OSError as error:
        text = apparmor.profile_text()
        lines += [f"The profile could not be written here ({error.strerror}). It is:", text]
        profile = Path(f"{apparmor.NAME}.apparmor")
    else:
        lines.append(f"A profile for this Python is written to {profile}.")
    return [*lines, "Put it in force, then ask again:", *apparmor.install_commands(profile)]


def jail_in_a_line(layers: list[Layer]) -> str:
    """Return in one line whether submissions can be graded in a jail here."""
    missing = [layer for layer in layers if not layer.in_force]
    below = [layer.name for layer in missing if layer.required]
    if below:
        return f"no jail here ({', '.join(below)} missing): attncourse grade refuses"
    if missing:
        names = " and ".join(layer.name for layer in missing)
        return f"the jail holds; {names} would make it stronger"
    return "the jail holds, every layer is in force"
