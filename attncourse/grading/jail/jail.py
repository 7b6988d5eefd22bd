"""The jail that a submission runs in.

A lane forks off the *zygote*, which calls ``enter``; for each submission the zygote calls
``fork``, and the child ``enter_worker``. Each step takes something away for good: the zygote
loses sight of the machine, its worker whatever the zygote still may do. ``layers`` says what is
in force. Only Linux has a jail; elsewhere ``enter`` raises.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from attncourse.grading.jail import confine, kernel, landlock, layers
from attncourse.grading.jail.layers import JailError, Layer
from attncourse.grading.jail.rootfs import WORK, Root, library_bytes, python_folders
from attncourse.grading.jail.seccomp import AUDIT_ARCH, Filter
from attncourse.grading.limits import MB, Limits
from attncourse.grading.machine import lane_environment

ENVIRONMENT = {
    "HOME": WORK,
    "TMPDIR": WORK,
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MPLBACKEND": "Agg",
    "MPLCONFIGDIR": WORK,
    "TORCHDYNAMO_DISABLE": "1",
}
MAX_INODES = 10_000
KEYCTL_JOIN_SESSION_KEYRING, SECCOMP_MODE_FILTER = 1, 2  # the kernel's numbers


class Jail:
    """The jail of a zygote and its workers.

    ``view`` becomes ``rootfs.COURSE``. ``hidden`` are folders that must not be seen even if they
    are in one that Python needs; so are, in any case, the course's package and its repository.
    ``limits`` may be changed from one worker to the next; there are programs in the jail if the
    first allows several processes.
    """

    def __init__(self, view: Path, limits: Limits, hidden: tuple[Path, ...] = ()):
        self.view, self.limits, self.hidden = view, limits, hidden
        self._layers: dict[str, Layer] = {}

    @property
    def layers(self) -> list[Layer]:
        """Return the layers built so far."""
        return list(self._layers.values())

    @contextmanager
    def _building_layer(self, name: str) -> Iterator[list[str]]:
        """Note whether the block builds this layer; raise ``JailError`` if a required one fails.

        A detail for the report may be appended to the list that it yields.
        """
        detail: list[str] = []
        try:
            yield detail
        except (OSError, AttributeError, ImportError) as error:
            remedy = layers.remedy_for_error(name, error)
            layer = self._layers[name] = layers.missing_layer(name, str(error), remedy)
            if layer.required:
                raise JailError(f"no jail: {name}: {layer.detail}; {layer.remedy}") from error
        else:
            self._layers[name] = layers.held_layer(name, *detail)

    # --- the zygote -----------------------------------------------------------------------------

    def enter(self) -> None:
        """Lock this process in, for good. It must have a single thread.

        It goes on as a child, the first process of a namespace of its own: whatever ends it ends
        all its workers. The process that called stays behind to wait: it ends as the child does,
        and the child ends with it, so the lane's number for it remains good.
        """
        if not is_jail_possible():
            raise JailError(f"no jail: expected Linux on {' or '.join(AUDIT_ARCH)}, {NOT_HERE}")
        confine.require_confinable()
        import resource  # noqa: F401  now: workers find it loaded

        # All that is read from the machine is read first: inside, none of it can be found.
        self._root = Root(self.view, self.hidden, programs=self.limits.processes > 1)
        self._libraries = library_bytes(python_folders())
        # For one process and for several; made here, so that no worker has to.
        self._filters = {n: Filter(kernel.MACHINE, n) for n in (1, 2)}
        # The private root has no /proc. This descriptor reaches the machine's until a worker closes
        # it.
        self._proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        # First, for a user without rights may make the other namespaces only inside of this one.
        with self._building_layer(layers.USER):
            self._become_root_inside()
        with self._building_layer(layers.PROCESSES):
            self._become_first_process()
            kernel.unshare(kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS)
            kernel.call("sethostname", b"jail", 4)
        with self._building_layer(layers.NETWORK):
            kernel.unshare(kernel.CLONE_NEWNET)
        with self._building_layer(layers.FILES):
            kernel.unshare(kernel.CLONE_NEWNS)
            self._root.enter()
        # Workers are forks of this process: what lies in its memory they can read.
        self._empty_start_texts()

    def _become_root_inside(self) -> None:
        """Enter a user namespace in which this process may set up all other layers.

        If the process is really root, workers are a user of their own: limits do not bind root, and
        root's files would be theirs. A helper that stays outside has the right to map that user.
        """
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # else /proc/self is not this process's own
        owner = confine.unused_outer_id()
        self._as_root = owner is not None
        if owner is None:
            uid, gid = os.geteuid(), os.getegid()
            kernel.unshare(kernel.CLONE_NEWUSER)
            self._map_user(uid, gid)
            return
        process, (listen, tell) = os.getpid(), os.pipe()
        helper = os.fork()
        if helper == 0:
            status = 1
            try:
                os.close(tell)
                if os.read(listen, 1):
                    for kind in ("uid_map", "gid_map"):
                        self._write_in_proc(
                            f"{process}/{kind}", f"0 0 1\n{confine.USER_INSIDE} {owner} 1"
                        )
                    status = 0
            finally:  # whatever happened, it does not go on as if it were the zygote
                os._exit(status)
        os.close(listen)
        try:
            kernel.unshare(kernel.CLONE_NEWUSER)
            os.write(tell, b".")
        finally:
            os.close(tell)
            _, status = os.waitpid(helper, 0)
        if status:
            raise OSError("root here lacks the capabilities SETUID and SETGID")

    def _map_user(self, uid: int, gid: int) -> None:
        """Make the outer user and group of these numbers the only ones inside."""
        with suppress(OSError):  # denied already, in a namespace within such a one
            self._write_in_proc("self/setgroups", "deny")
        self._write_in_proc("self/uid_map", f"{confine.USER_INSIDE} {uid} 1")
        self._write_in_proc("self/gid_map", f"{confine.USER_INSIDE} {gid} 1")

    def _become_first_process(self) -> None:
        """Go on as the first process of a new namespace of processes.

        The process that called waits in its place; see ``enter``.
        """
        lane, this = os.getppid(), kernel.pidfd_open(os.getpid())
        kernel.unshare(kernel.CLONE_NEWPID)
        child = os.fork()  # the new namespace holds this process's children, not itself
        if child:
            confine.wait_in_place_of(child, lane)
        os.setsid()  # a signal to its own group would reach out of the namespace
        kernel.die_with_parent(this)
        os.close(this)
        self._namespace = self._open_in_proc("self/ns/pid", os.O_RDONLY)
        self._zygote = kernel.pidfd_open(os.getpid())

    def _empty_start_texts(self) -> None:
        """Empty the texts that this process was started with: its arguments and environment."""
        with suppress(OSError):
            kernel.syscall("keyctl", KEYCTL_JOIN_SESSION_KEYRING, None)  # a new one, and empty
        # Behind the program's name, which may hold anything: where the kernel put both texts.
        fields = self._read_in_proc("self/stat").rpartition(")")[2].split()
        argument_start, argument_end, start, end = map(int, fields[45:49])
        os.environ.clear()
        os.environ.update(ENVIRONMENT)
        sys.argv[:] = [""]
        sys.orig_argv[:] = [""]
        ctypes.memset(argument_start, 0, argument_end - argument_start)
        ctypes.memset(start, 0, end - start)

    def fork(self) -> int:
        """Fork as ``os.fork`` does; the child is the first process of a new namespace."""
        kernel.unshare(kernel.CLONE_NEWPID)
        child = -1
        try:
            child = os.fork()
        finally:
            if child:  # back, without which there is neither another fork nor a thread
                self._return_to_own_namespace(child)
        return child

    def _return_to_own_namespace(self, child: int) -> None:
        """Return to the zygote's namespace after a fork; if that fails, end the child and raise.

        Otherwise nobody would wait for the child.
        """
        try:
            kernel.call("setns", self._namespace, kernel.CLONE_NEWPID)
        except OSError:
            if child > 0:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            raise

    # --- its worker -----------------------------------------------------------------------------

    def enter_worker(self, keep: tuple[int, ...] = ()) -> None:
        """Take away the rest, in the child that ``fork`` made, except the descriptors ``keep``."""
        # Limits count what is there already, which is the zygote's: measured before anything.
        pages = self._read_in_proc("self/statm").split()
        page_bytes = os.sysconf("SC_PAGE_SIZE")
        size, data = int(pages[0]) * page_bytes, int(pages[5]) * page_bytes  # all; data and stack
        os.setsid()  # a signal to its own group would reach the zygote's
        with suppress(OSError):  # where memory runs out, the kernel is to end this one first
            self._write_in_proc("self/oom_score_adj", "1000")
        with self._building_layer(layers.USER):
            self._become_user()
        with self._building_layer(layers.PROCESSES):
            kernel.unshare(kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS)
        with self._building_layer(layers.FILES):  # the zygote's network has nothing to be kept from
            self._mount_work_folder()
        with self._building_layer(layers.LIMITS):
            confine.set_limits(self.limits, size, data, self._libraries)
        with self._building_layer(layers.CAPABILITIES):  # after the mounts, which take some
            kernel.drop_capabilities()
        kernel.die_with_parent(self._zygote)
        confine.replace_descriptors(keep)
        with self._building_layer(layers.LANDLOCK) as detail:
            programs = ["/usr"] if self.limits.processes > 1 else []
            detail.append(f"version {landlock.restrict_thread([WORK], ['/dev/null'], programs)}")
        with self._building_layer(layers.SECCOMP):  # last, since it refuses most of the calls above
            kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
            rules = self._filters[min(self.limits.processes, 2)]
            kernel.prctl(kernel.PR_SET_SECCOMP, SECCOMP_MODE_FILTER, rules.address)

    def _become_user(self) -> None:
        """Become a user without rights, the only one of a namespace that nobody shares."""
        if self._as_root:
            os.setgroups([])
            os.setresgid(confine.USER_INSIDE, confine.USER_INSIDE, confine.USER_INSIDE)
            os.setresuid(confine.USER_INSIDE, confine.USER_INSIDE, confine.USER_INSIDE)
            kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        kernel.unshare(kernel.CLONE_NEWUSER)
        self._map_user(confine.USER_INSIDE, confine.USER_INSIDE)

    def _mount_work_folder(self) -> None:
        """Mount the one folder that a worker may write to, and make it the present folder."""
        kernel.unshare(kernel.CLONE_NEWNS)
        flags = kernel.NO_SUID | kernel.NO_DEVICES | kernel.NO_EXEC
        size = self.limits.disk * MB
        kernel.mount_tmpfs(WORK, flags, f"size={size},nr_inodes={MAX_INODES},mode=700")
        os.umask(0o077)
        os.chdir(WORK)

    # --- /proc of the machine, which is in no jail ----------------------------------------------

    def _open_in_proc(self, name: str, flags: int) -> int:
        """Open a file of the machine's /proc, which is in no jail; return its descriptor."""
        return os.open(name, flags | os.O_CLOEXEC, dir_fd=self._proc)

    def _read_in_proc(self, name: str) -> str:
        """Return the text of a file of the machine's /proc."""
        with open(name, opener=self._open_in_proc) as file:
            return file.read()

    def _write_in_proc(self, name: str, text: str) -> None:
        """Write a text to a file of the machine's /proc."""
        with open(name, "w", opener=self._open_in_proc) as file:
            file.write(text)


# --- what this machine can do -------------------------------------------------------------------

NOT_HERE = f"got {sys.platform} on {kernel.MACHINE}: grade on Linux, in WSL 2 or in a container"
PROBE_SECONDS = 20  # until the probe is ended, which takes a fraction of one
PROBE_PROGRAM = """\
import sys
sys.path[:0] = sys.argv[1:]
from attncourse.grading.jail.probe import main
main()
"""


def is_jail_possible() -> bool:
    """True if there is a jail for this operating system and processor."""
    return sys.platform == "linux" and kernel.MACHINE in AUDIT_ARCH


@cache
def _probed_layers() -> tuple[Layer, ...]:
    """Return each layer as a probe finds it, once in this process."""
    if not is_jail_possible():
        names = layers.PROTECTS
        return tuple(Layer(name, False, name in layers.REQUIRED_LAYERS, NOT_HERE) for name in names)
    try:
        return tuple(Layer(**layer) for layer in run_probe())
    except JailError as problem:
        return tuple(
            layers.missing_layer(name, str(problem), layers.NOT_STARTED) for name in layers.PROTECTS
        )


def run_probe() -> list[dict[str, Any]]:
    """Return the layers as the fields of ``Layer``, found by a process that starts as a lane does.

    Raises ``JailError`` with what that process said instead.
    """
    command = [sys.executable, "-P", "-c", PROBE_PROGRAM, str(Path(__file__).parents[3])]
    try:
        ended = subprocess.run(
            command, env=lane_environment(), capture_output=True, text=True, timeout=PROBE_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise JailError(f"the probe of the jail did not end in {PROBE_SECONDS} s") from None
    output_lines = ended.stdout.strip().splitlines()
    try:
        return json.loads(output_lines[-1])  # the last line: a Python may greet whoever starts it
    except (ValueError, IndexError):
        words = (ended.stderr.strip().splitlines() or output_lines)[-1:]
        raise JailError(words[0] if words else f"exit status {ended.returncode}") from None


def available_layers() -> list[Layer]:
    """Return each layer, and whether it holds here: a whole jail is built, once, and tried."""
    return list(_probed_layers())


def missing_required_layers() -> list[Layer]:
    """Return the layers that grading needs and this machine does not have."""
    return [layer for layer in available_layers() if layer.required and not layer.in_force]
