"""A probe of the jail: builds one and does in it what each layer is there to refuse.

``jail.available_layers`` runs it in a process of its own and reads the layers from its output.
"""

import json
import os
import signal
import socket
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from attncourse.grading.jail import kernel, layers
from attncourse.grading.jail.jail import Jail
from attncourse.grading.jail.layers import JailError, Layer
from attncourse.grading.jail.rootfs import COURSE, WORK
from attncourse.grading.limits import MB, Limits

PROBE_LIMITS = Limits(memory=64, disk=1, cpu=5)
ALARM_SECONDS = 10
PR_CAPBSET_READ, CAP_SYS_ADMIN = 23, 21  # does this process still have that capability?


def main() -> None:
    """Build a jail, and print its layers as JSON."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        secret = Path(folder, "secret")
        secret.touch()
        os.mkdir(view := Path(folder, "view"))
        listen, tell = os.pipe()
        zygote = os.fork()
        if zygote == 0:
            os.close(listen)
            signal.alarm(ALARM_SECONDS)  # a probe that hangs is to end by itself
            run_and_end(tell, lambda: probe_zygote(Jail(view, PROBE_LIMITS), secret, server, tell))
        os.close(tell)
        with open(listen) as file:
            text = file.read()
        os.waitpid(zygote, 0)
    early = with_layers_not_built([layers.missing_layer(layers.USER, "the probe ended early")])
    lines = text.splitlines() or [json.dumps([asdict(layer) for layer in early])]
    print(lines[-1])  # of a worker and then of its zygote, where that could not go on


def run_and_end(tell: int, work: Callable[[], list[Layer] | None]) -> None:
    """Run ``work``, write the layers that it returns to the pipe ``tell``, end this process."""
    try:
        layers = work()
    except BaseException as error:  # in a process without standard output: it has to be told
        layers = with_layers_not_built([unforeseen_error(error)])
    try:
        if layers is not None:
            os.write(tell, json.dumps([asdict(layer) for layer in layers]).encode() + b"\n")
    finally:
        os._exit(0)


def unforeseen_error(error: BaseException) -> Layer:
    """Return the first layer as missing because of an error that belongs to no layer."""
    remedy = layers.remedy_for_error(layers.USER, error) if isinstance(error, Exception) else ""
    return layers.missing_layer(layers.USER, f"{type(error).__name__}: {error}", remedy)


def probe_zygote(jail: Jail, secret: Path, server: socket.socket, tell: int) -> list[Layer] | None:
    """Enter the jail and fork a worker that tells the layers; return them if it cannot be made."""
    outside = server.getsockname()
    try:
        jail.enter()
    except JailError:
        return with_layers_not_built(jail.layers)
    offline = is_refused(lambda: socket.create_connection(outside, 1))
    child = jail.fork()
    if child == 0:
        signal.alarm(ALARM_SECONDS)
        run_and_end(tell, lambda: probe_worker(jail, secret, offline, tell))
    os.waitpid(child, 0)
    return None


def probe_worker(jail: Jail, secret: Path, offline: bool, tell: int) -> list[Layer]:
    """Enter the worker's jail, try what each layer is to refuse, and return the layers.

    ``offline`` says whether the zygote could reach no server, ``secret`` is a file outside.
    """
    try:
        jail.enter_worker(keep=(tell,))
    except JailError:
        return with_layers_not_built(jail.layers)
    holds = {
        layers.USER: os.getuid() == 1000,
        layers.FILES: not secret.exists() and not os.path.exists("/proc/self") and can_write(),
        layers.NETWORK: offline,
        layers.PROCESSES: os.getpid() == 1 and os.getppid() == 0 and os.getsid(0) == 1,
        layers.LIMITS: is_disk_limited()
        and is_refused(lambda: bytearray(2 * PROBE_LIMITS.memory * MB), MemoryError),
        layers.CAPABILITIES: kernel.call("prctl", PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) == 0,
        layers.LANDLOCK: is_refused(lambda: os.open("/dev/full", os.O_WRONLY)),
        layers.SECCOMP: is_refused(lambda: kernel.unshare(kernel.CLONE_NEWUSER)),
    }
    return [
        layer
        if holds[layer.name] or not layer.in_force
        else layers.missing_layer(layer.name, layers.DOES_NOT_HOLD)
        for layer in jail.layers
    ]


def with_layers_not_built(built: list[Layer]) -> list[Layer]:
    """Return all layers; those after the last of ``built``, where building ended, are missing."""
    names, last = [layer.name for layer in built], built[-1].name
    missing = [name for name in layers.PROTECTS if name not in names]
    return built + [layers.missing_layer(name, f"needs {last}", f"see {last}") for name in missing]


def is_refused(act: Callable[[], object], kind: type[BaseException] = OSError) -> bool:
    """True if an act raises an exception of this kind."""
    try:
        act()
    except kind:
        return True
    return False


def can_write() -> bool:
    """True if the work folder can be written to, and others cannot."""
    Path(WORK, "file").touch()
    return all(is_refused(Path(folder, "file").touch) for folder in ("/", "/usr", COURSE))


def is_disk_limited() -> bool:
    """True if writing stops at the limit of the disk."""
    n_pieces = PROBE_LIMITS.disk * 4
    filled_file = os.path.join(WORK, "much")
    with suppress(OSError), open(filled_file, "wb") as file:
        for _ in range(n_pieces):
            file.write(bytes(MB // 2))
    return os.stat(filled_file).st_size <= PROBE_LIMITS.disk * MB
