"""Small programs in a real jail cannot do what they can do outside it."""

import errno
import json
import mmap
import os
import platform
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attncourse.grading import doctor
from attncourse.grading.cli import app
from attncourse.grading.jail import apparmor, jail, layers, rootfs, seccomp
from attncourse.grading.jail.seccomp import (
    ALLOWED,
    AUDIT_ARCH,
    PARTLY_ALLOWED,
    filter_program,
    syscall_numbers,
)
from helpers.project import ROOT

JAILED_PROGRAM = ROOT / "tests/helpers/jailed_program.py"
SYSTEM_PYTHON = "/usr/bin/python3"
NOBODY_ID = 65534
# Some folder that lies among the libraries and that no program here needs.
LIBRARY_FOLDER = next(
    str(path)
    for path in sorted(Path("/usr/lib").iterdir())
    if path.is_dir() and not path.is_symlink() and re.fullmatch("[a-oq-z][a-z]+", path.name)
)


@pytest.fixture(scope="module", autouse=True)
def world_readable_folders():
    """Let the users of a jail enter the folders that these tests make."""
    mask = os.umask(0o022)
    yield
    os.umask(mask)


class Prison:
    """Run programs in a jail, of root or of an ordinary user, or outside it."""

    def __init__(self, view: Path, command: list[str], driver: Path = JAILED_PROGRAM):
        self.view, self.command, self.driver = view, command, driver

    def command_for(
        self, code: str, *, view: Path | None, limits=None, without=(), hidden=(), secret=""
    ):
        settings = {"program": code, "view": str(view or ""), "limits": limits or {}}
        settings |= {
            "without": list(without),
            "hidden": list(map(str, hidden)),
            "secret": str(secret),
        }
        return [*self.command, str(self.driver), json.dumps(settings)]

    def start(self, code: str, **more) -> subprocess.Popen:
        command = self.command_for(code, **{"view": self.view, **more})
        environment = {**os.environ, "TOKEN": "a-secret-of-the-environment"}
        return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd="/")

    def run(self, code: str, **more) -> tuple[dict, int | None]:
        """Return the fields that the program printed, and the status that it ended with."""
        process = self.start(code, **more)
        try:
            text, _ = process.communicate(timeout=60)
        finally:
            process.kill()  # ends, too, what a failing test has started
        lines = [json.loads(line) for line in text.splitlines()]
        result = lines[0] if lines and isinstance(lines[0], dict) else {}
        return result, lines[-1] if lines and isinstance(lines[-1], int) else None

    def inside(self, code: str, **more):
        """Return the program's ``result`` in the jail, or (type, code) of its exception."""
        return self.value(self.run(code, **more))

    def outside(self, code: str):
        return self.value(self.run(code, view=None))

    def value(self, result_and_status: tuple[dict, int | None]):
        result, status = result_and_status
        assert result, f"the program ended with status {status} before it said anything"
        if "raised" in result:
            return (result["raised"], result["code"] or result["text"])
        return result["result"]


def require_jail_or_skip() -> None:
    missing = jail.missing_required_layers()
    if any(layer.detail == layers.DOES_NOT_HOLD for layer in missing):
        pytest.fail(f"the jail does not hold: {missing}")
    if missing:
        pytest.skip(f"no jail here: {missing[0].name}: {missing[0].detail}")


@pytest.fixture
def folder():
    """A temporary folder that any user can enter; pytest's own are for one user."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def open_driver():
    """Copy the program and the package where any user can read them.

    A checkout may lie in a home that is closed to others.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        package = Path(rootfs.__file__).parents[2]
        shutil.copytree(
            package, folder / "attncourse", ignore=shutil.ignore_patterns("__pycache__", "*.js")
        )
        driver = folder / "tests" / "grading" / JAILED_PROGRAM.name
        driver.parent.mkdir(parents=True)
        shutil.copyfile(JAILED_PROGRAM, driver)
        yield driver


@pytest.fixture(params=["this user", "nobody"])
def prison(request, folder, open_driver):
    """Return a jail that this user starts, and one that a user without any rights starts."""
    require_jail_or_skip()
    view = folder / "view"
    view.mkdir()
    (view / "lesson.py").write_text("TAUGHT = 7\n")
    if request.param == "this user":
        return Prison(view, [sys.executable])
    if os.geteuid() != 0:
        pytest.skip("only root can become nobody; this user is an ordinary one already")
    if not shutil.which("setpriv") or not Path(SYSTEM_PYTHON).exists():
        pytest.skip(f"needs setpriv and {SYSTEM_PYTHON}, which any user can start")
    user = ["--reuid", str(NOBODY_ID), "--regid", str(NOBODY_ID), "--clear-groups"]
    command = ["setpriv", *user, SYSTEM_PYTHON]
    check = f"import sys; open({str(open_driver)!r}); sys.exit(sys.version_info < (3, 11))"
    if subprocess.run([*command, "-c", check], capture_output=True, cwd="/").returncode:
        pytest.skip(f"nobody cannot read {open_driver}, or {SYSTEM_PYTHON} is older than 3.11")
    return Prison(view, command, open_driver)


@pytest.fixture
def user_prison(prison, request):
    """Return the jail that this user starts, for tests that need this Python or much time."""
    if request.node.callspec.params["prison"] == "nobody":
        pytest.skip("once is enough")
    return prison


# --- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("home", [Path.home(), ROOT.parent], ids=["home", "a home with the clone"])
def test_the_machines_files_are_not_in_the_jail(prison, folder, home):
    (folder / "gradebook.db").write_text("x")
    paths = [ROOT / "pyproject.toml", ROOT / "solutions", ROOT / "attncourse", folder]
    paths += [folder / "gradebook.db", "/proc", "/proc/self/maps", "/sys", "/etc/shadow", "/home"]
    paths += ["/var", "/run", "/opt", "/mnt", "/etc/hostname", "/dev/tty", "/dev/mem"]
    paths += [*home.iterdir()][:20]
    code = f"""
import os
from pathlib import Path
result = {{p: os.listdir(p) if Path(p).is_dir() else [] for p in {[*map(str, paths)]}
          if os.path.lexists(p)}}
"""
    steps = entries_above(prison.outside(f"{IMPORT_PYTHON_FOLDERS}; result = python_folders()"))
    seen = prison.inside(code)
    assert {p: sorted(set(names) - steps.get(p, set())) for p, names in seen.items()} == {
        path: [] for path in set(map(str, paths)) & steps.keys()
    }
    find_existing = f"import os; result = [p for p in {[*map(str, paths)]} if os.path.lexists(p)]"
    assert {str(folder / "gradebook.db"), "/proc/self/maps"} <= set(prison.outside(find_existing))


IMPORT_PYTHON_FOLDERS = "from attncourse.grading.jail.rootfs import python_folders"


def entries_above(places: list[str]) -> dict[str, set[str]]:
    """Return the folders above these places, each with its entries on the way to one of them.

    A clone has its environment, and a home may have its Python: such a folder is there, empty but
    for the way to what Python needs.
    """
    steps: dict[str, set[str]] = {}
    for place in {*places, *map(os.path.realpath, places)}:
        for folder in Path(place).parents:
            steps.setdefault(str(folder), set()).add(Path(place).relative_to(folder).parts[0])
    return steps


def test_the_jail_holds_only_the_systems_libraries(prison):
    code = """
import os
result = {folder: os.listdir(folder) for folder in ("/", "/usr", "/usr/share")
          if os.path.isdir(folder)}
"""
    names_by_folder = prison.inside(code)
    libraries = {"lib", "lib32", "lib64", "libx32"}
    assert set(names_by_folder["/usr"]) <= libraries | {"share", "local"}
    assert set(names_by_folder["/"]) >= {"course", "submission", "etc", "dev", "usr", "lib"}
    assert "bin" not in names_by_folder["/"]
    assert set(names_by_folder.get("/usr/share", ())) <= {
        "zoneinfo",
        "fonts",
        "fontconfig",
        "matplotlib",
    }
    with_processes = prison.inside(code, limits={"processes": 2})
    assert "bin" in with_processes["/"]
    assert "bin" in with_processes["/usr"]


def test_the_jail_holds_the_view_and_python(prison):
    code = """
import os, json, sqlite3, sysconfig, email.mime.text, encodings.idna
result = [open("/course/lesson.py").read(), os.getcwd(), sorted(os.listdir("/dev"))]
"""
    devices = ["full", "null", "random", "shm", "urandom", "zero"]
    assert prison.inside(code) == ["TAUGHT = 7\n", "/submission", devices]


def test_no_trace_of_the_package_is_in_the_jail(user_prison):
    code = """
import os, sys
result, seen = [], 0
for folder, folders, files in os.walk("/", followlinks=False):
    seen += len(files)
    for name in folders + files:
        path = os.path.join(folder, name)
        if "attncourse" in name and not folder.startswith("/usr/local/bin"):
            full = os.listdir(path) if os.path.isdir(path) else open(path).read()
            # A clone is called so, too: of it there is the way to Python's libraries and no more.
            on_the_way = os.path.isdir(path) and len(full) == 1 and sys.prefix.startswith(path)
            result.append([path, 0 if on_the_way else len(full)])
assert seen > 5000, seen
"""
    traces = user_prison.inside(code)
    assert all(size == 0 for _, size in traces), traces
    if Path(rootfs.__file__).parents[3] == ROOT:  # installed in place: there are traces
        assert any(path.endswith((".pth", "-info")) for path, _ in traces)


def test_hidden_folders_are_empty(prison):
    code = f"import os; result = [os.listdir({LIBRARY_FOLDER!r}), os.listdir('/course')]"
    assert prison.inside(code, hidden=[LIBRARY_FOLDER, "/nowhere"]) == [[], ["lesson.py"]]
    assert prison.inside(code)[0] != []


def test_nothing_is_written_outside_the_work_folder(prison):
    places = ["/", "/usr", "/course", "/etc", "/dev", "/usr/lib", "/empty"]
    places += [os.__file__.rpartition("/")[0]]
    code = f"""
import os
def tries(action, *args):
    try: action(*args); return True
    except OSError: return False
result = []
for place in {places}:
    name = place + "/made"
    deeds = [(open, name, "w"), (os.mkdir, name), (os.symlink, "/", name), (os.chmod, place, 7)]
    result += [[place, deed[0].__name__] for deed in deeds if tries(*deed)]
for path in ("/course/lesson.py", "/etc/passwd"):
    result += [path for deed in ((open, path, "a"), (os.unlink, path)) if tries(*deed)]
"""
    assert prison.inside(code) == []
    for missing_layer in ("Landlock", "seccomp"):  # each of several locks is enough
        assert prison.inside(code, without=[missing_layer]) == []


def test_the_work_folder_is_also_tmp_and_shm(prison):
    code = """
import os, sys, tempfile
folders = ["/dev/shm", tempfile.gettempdir()]
if not any(path.startswith("/tmp/") for path in sys.path):  # else Python itself is there
    folders.append("/tmp")
for folder in folders:
    assert os.path.samefile(folder, "/submission"), folder
os.makedirs("a/b"); open("a/b/f", "w").write("x"); os.rename("a/b/f", "g"); os.symlink("g", "h")
result = [open("h").read(), oct(os.stat("g").st_mode & 0o777)]
open("/dev/null", "w").write("x")
"""
    assert prison.inside(code) == ["x", "0o600"]


def test_the_jails_user_does_not_own_this_users_files(user_prison):
    if os.geteuid() != 0:
        pytest.skip("an ordinary user's jail has this user's own number")
    (user_prison.view / "private").write_text("x")
    (user_prison.view / "private").chmod(0o600)
    assert user_prison.inside("open('/course/private')") == ("PermissionError", "EACCES")


# --- limits -------------------------------------------------------------------------------------


def test_disk_space_is_limited(prison):
    code = """
import os
try:
    for number in range(100):
        with open(f"f{number}", "wb") as file: file.write(bytes(500_000))
except OSError as error:
    result = [error.errno, sum(os.stat(name).st_size for name in os.listdir() if name[0] == "f")]
"""
    code_of_error, size = prison.inside(code, limits={"disk": 3})
    assert code_of_error == errno.ENOSPC
    assert 2_000_000 <= size <= 3_000_000 + 4096


def test_file_size_and_number_of_files_are_limited(prison):
    big = "f = open('f', 'wb'); f.truncate(2_000_000)"
    assert prison.inside(big, limits={"disk": 1}) == ("OSError", "EFBIG")
    many = "import os\nfor n in range(20_000): os.close(os.open(str(n), os.O_CREAT))"
    assert prison.inside(many) == ("OSError", "ENOSPC")


def test_memory_is_limited(prison):
    code = "result = len(bytearray(150_000_000))"
    assert prison.inside(code, limits={"memory": 100})[0] == "MemoryError"
    assert prison.inside(code, limits={"memory": 200}) == 150_000_000
    shared = "import mmap; mmap.mmap(-1, 150_000_000)"
    assert prison.inside(shared, limits={"memory": 100})[0] == "OSError"


def test_mapped_libraries_do_not_count_as_memory(user_prison, tmp_path):
    """torch for graphics cards maps several GB of libraries at its import, and writes little."""
    libraries = tmp_path / "python3.11" / "site-packages" / "nvidia" / "cublas" / "lib"
    libraries.mkdir(parents=True)
    with open(libraries / "libcublasLt.so.12", "wb") as file:
        file.truncate(3 << 30)
    (libraries / "libcublasLt.so").symlink_to("libcublasLt.so.12")
    assert rootfs.library_bytes([str(tmp_path)]) == 3 << 30
    with open(libraries / "libcublasLt.so.12", "rb") as file:
        mapped = mmap.mmap(file.fileno(), 1 << 20, access=mmap.ACCESS_READ)
    assert rootfs.library_bytes([str(tmp_path)]) == 0  # imported already: it needs no more
    mapped.close()
    code = """
import mmap
from attncourse.grading.jail import confine, kernel
from attncourse.grading.limits import Limits
pages = open("/proc/self/statm").read().split()
size, data = (int(pages[field]) * 4096 for field in (0, 5))
confine.set_limits(Limits(memory=200, threads=4000, files=200), size, data, {libraries})
try: mmap.mmap(-1, 2 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ); mapped = True
except OSError: mapped = False
try: bytearray(300_000_000); written = True
except MemoryError: written = False
result = mapped, written
"""
    assert user_prison.outside(code.format(libraries=3 << 30)) == [True, False]
    assert user_prison.outside(code.format(libraries=0)) == [False, False]


def test_threads_are_limited(prison):
    code = """
import threading
wait, result = threading.Event(), 0
try:
    while result < 100:
        thread = threading.Thread(target=wait.wait, daemon=True); thread.start(); result += 1
except RuntimeError: pass
wait.set()
"""
    assert prison.inside(code, limits={"threads": 20}) == 19
    assert prison.outside(code) == 100


def test_processor_time_is_limited(user_prison):
    start = time.monotonic()
    _, status = user_prison.run(
        "import signal; signal.signal(24, 1)\nwhile True: pass", limits={"cpu": 1}
    )
    assert status == -signal.SIGKILL
    assert time.monotonic() - start < 60


def test_other_limits_are_set_and_cannot_be_raised(prison):
    code = """
import resource as r
names = ("CORE", "NOFILE", "MSGQUEUE", "RTPRIO", "MEMLOCK")
result = [r.getrlimit(getattr(r, "RLIMIT_" + name)) for name in names]
try: r.setrlimit(r.RLIMIT_NOFILE, (300, 300)); result.append("raised")
except (ValueError, OSError): pass
"""
    expected = [[0, 0], [256, 256], [0, 0], [0, 0], [65536, 65536]]
    assert prison.inside(code) == expected


# --- processes ----------------------------------------------------------------------------------


def test_another_process_is_refused(prison):
    for code in ("import os; os.fork()", "import subprocess; subprocess.run(['/bin/true'])"):
        assert prison.inside(code) == ("BlockingIOError", "EAGAIN")
    assert prison.inside("import os; os.execv('/bin/true', ['true'])")[0] == "PermissionError"
    run_id = "import subprocess as s; result = s.check_output(['/usr/bin/id', '-u'], text=True)"
    assert prison.inside(run_id, limits={"processes": 2}) == "1000\n"
    assert prison.outside(run_id).strip().isdigit()


def test_processes_are_limited_without_seccomp(prison):
    code = """
import os, signal
result = 0
try:
    while result < 100:
        if os.fork() == 0: signal.pause()
        result += 1
except OSError: pass
"""
    assert prison.inside(code, without=["seccomp"], limits={"threads": 12}) == 11


def test_a_worker_sees_no_other_process(prison):
    code = (
        "import os; result = [os.getpid(), os.getppid(), os.getsid(0), os.getpgrp(), os.getuid()]"
    )
    assert prison.inside(code) == [1, 0, 1, 1, 1000]


def test_signals_reach_no_other_process(prison):
    """The program sends no signal unless it is alone in its namespace, so nobody is harmed."""
    bystander = subprocess.Popen(["sleep", "60"], user=NOBODY_ID if os.geteuid() == 0 else None)
    code = f"""
import os, signal
assert (os.getpid(), os.getppid(), os.getsid(0)) == (1, 0, 1)
result = []
for target in (0, -1, {bystander.pid}, {os.getpid()}, outside, -outside):
    try: os.kill(target, signal.SIGTERM); result.append("sent")
    except OSError as error: result.append(error.errno)
"""
    try:
        for without in ((), ("seccomp", "Landlock")):
            result, status = prison.run(
                f"signal=__import__('signal'); signal.signal(15, 1)\n{code}", without=without
            )
            assert status == 0  # said by the zygote, which lives
            assert result["result"][0] in ("sent", errno.EPERM)
            assert set(result["result"][1:]) <= {errno.ESRCH, errno.EPERM}
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def first_child(process: int) -> int:
    return int(Path(f"/proc/{process}/task/{process}/children").read_text().split()[0])


@pytest.mark.parametrize("killed", ["lane", "waiting process", "zygote", "worker"])
def test_a_worker_ends_with_its_zygote_and_lane(prison, killed):
    code = """
import os, signal, time
for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)
os.write(out, b'up\\n')
time.sleep(60)
"""
    process = prison.start(code)
    assert process.stdout.readline() == b"up\n"
    pids = {"lane": process.pid}
    pids["waiting process"] = first_child(process.pid)
    pids["zygote"] = first_child(pids["waiting process"])
    pids["worker"] = first_child(pids["zygote"])
    assert os.getsid(pids["zygote"]) == pids["zygote"]  # a terminal's Ctrl-C is not for it
    assert Path(f"/proc/{pids['worker']}/oom_score_adj").read_text() == "1000\n"
    assert not select.select([process.stdout], [], [], 0.3)[0]  # it does live on by itself
    os.kill(pids[killed], signal.SIGKILL)
    assert select.select([process.stdout], [], [], 10)[0]
    expected = b"-9\n" if killed == "worker" else b""  # nobody is left who could write
    assert process.stdout.read() == expected
    status = {"lane": -9, "zygote": 128 + 9, "worker": 0}
    if killed in status:
        assert process.wait(10) == status[killed]
    process.wait(10)
    process.stdout.close()


def test_files_that_the_zygote_opened_are_closed(prison, folder):
    (folder / "tests.ipynb").write_text("x")
    code = """
import os
result = []
for number in range(1000):
    try: os.fstat(number); result.append(number)
    except OSError: pass
assert all(os.path.sameopenfile(n, os.open("/dev/null", os.O_RDONLY)) for n in (0, 1, 2))
result.remove(out)
"""
    assert prison.inside(code, secret=folder / "tests.ipynb") == [0, 1, 2]


def test_the_environment_is_erased_from_memory(prison):
    code = """
import ctypes, os, sys
spans = [ctypes.string_at(a, b - a) for a, b in (block[:2], block[2:])]
result = [b"TOKEN" in spans[1], b"jailed_prog" in spans[0], os.environ.get("TOKEN"), sys.argv[0]]
libc = ctypes.CDLL(None); libc.getenv.restype = ctypes.c_char_p
result += [str(libc.getenv(b"TOKEN")), sorted(os.environ), str(libc.getenv(b"HOME"))]
"""
    names = sorted(jail.ENVIRONMENT)
    assert prison.inside(code) == [False, False, None, "", "None", names, "b'/submission'"]
    outside_result = prison.outside(code)
    assert outside_result[:3] == [True, True, "a-secret-of-the-environment"]


# --- the network --------------------------------------------------------------------------------


def test_no_network_connection_can_be_made(prison):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as unix:
        name = f"\\0jail-{os.getpid()}"
        unix.bind(name.replace("\\0", "\0"))
        unix.listen()
        tcp = f"import socket; socket.create_connection({server.getsockname()}, 3)"
        abstract = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect('{name}')"
        udp = "import socket as s; s.socket(2, s.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))"
        for code in (tcp, abstract, udp):
            assert prison.outside(code) is None
            assert prison.inside(code) == ("PermissionError", "EPERM")
            error_type, error_name = prison.inside(code, without=["seccomp"])  # the namespace alone
            assert error_name in (
                "ENETUNREACH",
                "EADDRNOTAVAIL",
                "ECONNREFUSED",
                "EPERM",
                "EACCES",
            ), error_type
            error_type, error_name = prison.inside(code, without=["seccomp", "Landlock"])
            assert error_name in ("ENETUNREACH", "EADDRNOTAVAIL", "ECONNREFUSED"), error_type


def test_no_network_interface_is_visible(prison):
    code = "import socket; result = [name for _, name in socket.if_nameindex()]"
    assert prison.inside(code, without=["seccomp"]) == ["lo"]
    assert prison.inside(code)[0] in ("PermissionError", "OSError")


# --- the kernel's calls -------------------------------------------------------------------------

FORBIDDEN_CALLS = """
unshare:272:97 setns:308:268 mount:165:40 umount2:166:39 pivot_root:155:41 chroot:161:51
ptrace:101:117 process_vm_readv:310:270 process_vm_writev:311:271 pidfd_open:434:434
pidfd_getfd:438:438 keyctl:250:219 add_key:248:217 request_key:249:218 bpf:321:280
perf_event_open:298:241 userfaultfd:323:282 io_uring_setup:425:425 memfd_create:319:279
memfd_secret:447:447 shmget:29:194 msgget:68:186 semget:64:190 mq_open:240:180
kexec_load:246:104 init_module:175:105 personality:135:92 open_by_handle_at:304:265
fanotify_init:300:262 inotify_init1:294:26 seccomp:317:277 setuid:105:146 setresuid:117:147
setgroups:116:159 capset:126:91 socket:41:198 connect:42:203 bind:49:200 sendmsg:46:211
sethostname:170:161 settimeofday:164:170 quotactl:179:60 swapon:167:224 reboot:169:142
setpriority:141:140 sched_setscheduler:144:119 sched_setaffinity:203:122 mlockall:151:230
fsopen:430:430 open_tree:428:428 move_mount:429:429 mount_setattr:442:442 setsid:112:157
setpgid:109:154 prctl_none:157:167 ioctl_none:16:29 fcntl_none:72:25 setxattr:188:5
"""


def test_forbidden_calls_are_refused_by_number(prison):
    table = syscall_numbers(FORBIDDEN_CALLS, platform.machine())
    code = f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
result = {{}}
for name, number in {table}.items():
    returned = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6)
    result[name] = ctypes.get_errno() if returned == -1 else "done"
"""
    error_by_call = prison.inside(code)
    assert set(error_by_call) == set(table)
    assert {name: code for name, code in error_by_call.items() if code != errno.EPERM} == {}
    error_without_seccomp = prison.inside(code, without=["seccomp"])
    assert (
        sum(code != errno.EPERM for code in error_without_seccomp.values()) > 20
    )  # they are seccomp's doing


def test_valid_calls_for_namespaces_and_prctl_are_refused(prison):
    """The same arguments succeed where there is no filter."""
    x86 = platform.machine() == "x86_64"
    unshare, clone, prctl, memfd = (272, 56, 157, 319) if x86 else (97, 220, 167, 279)
    code = f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    returned = libc.syscall(*[ctypes.c_long(a) for a in arguments])
    return ctypes.get_errno() if returned == -1 else "done"
result = [
    call({unshare}, 0x10000000),
    call({prctl}, 1, 0, 0, 0, 0),  # PR_SET_PDEATHSIG
    call({prctl}, 4, 1, 0, 0, 0),  # PR_SET_DUMPABLE
    call({memfd}, ctypes.addressof(ctypes.create_string_buffer(b"x")), 0),
]
if seccomp: result += [call({clone}, 0x10000000 | 17, 0, 0, 0, 0), call(435, 0, 0)]
"""
    refused = [errno.EPERM] * 5 + [errno.ENOSYS]
    assert prison.inside(f"seccomp = True\n{code}") == refused
    assert prison.inside(f"seccomp = False\n{code}", without=["seccomp"]) == ["done"] * 4


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the calls of 32-bit x86")
def test_other_system_call_tables_are_refused(prison):
    code = """
import ctypes, mmap
page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 7)
page.write(bytes.fromhex({!r}))
result = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""
    syscall = code.format("b8270000000f05c3")  # getpid
    int80 = code.format("53b814000000cd805bc3")  # the same as a 32-bit program asks
    x32 = code.format("b8270000400f05c3")
    assert prison.inside(syscall) == 1
    assert prison.inside(x32) == -errno.ENOSYS
    assert prison.run(int80) == ({}, -signal.SIGSYS)


def test_mounts_cannot_be_changed_even_with_all_rights(prison):
    """Without the filter a program becomes root of new namespaces, and still cannot unmount."""
    numbers = (272, 165, 166, 428) if platform.machine() == "x86_64" else (97, 40, 39, 428)
    code = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    filled = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return libc.syscall(ctypes.c_long(number), *filled) != -1
unshare, mount, umount, open_tree = {numbers}
result = [call(unshare, 0x10000000), call(unshare, 0x20000), call(unshare, 0x40000000)]
os.mkdir("new")
result.append(call(mount, b"t", b"/submission/new", b"tmpfs", 0, None))
for place in ({LIBRARY_FOLDER.encode()!r}, b"/usr", b"/course", b"/submission", b"/"):
    result.append([call(umount, place, 2), call(mount, None, place, None, 0x1020, None)])
result += [call(mount, b"proc", b"/submission/new", b"proc", 0, None)]
result += [call(open_tree, -100, b"/usr", 1)]
result.append(os.listdir({LIBRARY_FOLDER!r}))
"""
    result = prison.inside(code, without=["Landlock", "seccomp"], hidden=[LIBRARY_FOLDER])
    assert result == [True] * 4 + [[False, False]] * 5 + [False, False, []]


def test_no_privileges_are_left(prison):
    code = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
result = [libc.prctl(39, 0, 0, 0, 0), libc.prctl(3, 0, 0, 0, 0)]  # no new privileges, dumpable
result.append([c for c in range(41) if libc.prctl(23, c, 0, 0, 0) > 0])  # the bounding set
places = [p for p in ("/", "/usr", "/submission", "/course", "/dev/null") if os.path.exists(p)]
result.append([place for place in places if not os.statvfs(place).f_flag & os.ST_NOSUID])
"""
    assert prison.inside(code) == [1, 0, [], []]
    assert prison.outside(code)[:2] == [0, 1]


def test_setuid_programs_give_no_rights(prison):
    code = """
import subprocess, os
tried = [p for p in ("/usr/bin/su", "/usr/bin/mount", "/usr/bin/passwd") if os.path.exists(p)]
result = [subprocess.run([p, "-S", "root"], capture_output=True).returncode for p in tried]
assert 0 not in result
copied = open("/usr/bin/id", "rb").read(); open("id", "wb").write(copied); os.chmod("id", 0o6755)
subprocess.run(["/submission/id"])
"""
    assert prison.inside(code, limits={"processes": 3})[0] == "PermissionError"


def test_an_ordinary_program_runs_unhindered(prison):
    code = """
import asyncio, getpass, inspect, json, os, platform, random, secrets, shutil, tempfile, threading
import concurrent.futures, datetime, signal, time, warnings, zlib
async def wait(): await asyncio.sleep(0.001); return 3
assert asyncio.run(wait()) == 3
with tempfile.TemporaryDirectory() as folder: shutil.copytree("/course", folder + "/copy")
with tempfile.TemporaryFile() as file: file.write(b"x")
assert list(concurrent.futures.ThreadPoolExecutor(4).map(abs, [-1, -2])) == [1, 2]
time.sleep(0.001); platform.platform(); secrets.token_hex(); random.random(); getpass.getuser()
inspect.getsource(json); datetime.datetime.now().astimezone(); os.cpu_count(); os.urandom(4)
signal.setitimer(signal.ITIMER_REAL, 0)
result = "fine"
"""
    assert prison.inside(code) == "fine"


def test_numpy_torch_and_matplotlib_work(user_prison):
    code = """
import numpy as np, torch
import matplotlib.pyplot as plt
rng = np.random.default_rng(1)
a = rng.normal(size=(40, 40))
assert np.allclose(np.linalg.inv(a) @ a, np.eye(40)) and np.linalg.svd(a)[1].shape == (40,)
layer = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True)
optimizer = torch.optim.Adam(layer.parameters())
for _ in range(2):
    optimizer.zero_grad(); layer(torch.randn(2, 5, 16)).square().mean().backward(); optimizer.step()
torch.save(layer.state_dict(), "weights"); torch.load("weights")
plt.plot([1, 2]); plt.savefig("/submission/figure.png")
result = "fine"
"""
    assert user_prison.inside(code) == "fine"


# --- the filter, read as the kernel reads it ----------------------------------------------------


def action_of_filter(
    lines: list, number: int, arguments: tuple = (), arch: int | None = None
) -> int:
    """Return what a filter's program, run as the kernel runs it, returns for a system call."""
    words = {0: number, 4: arch} | {16 + 8 * i: a & 0xFFFFFFFF for i, a in enumerate(arguments)}
    value, at = 0, 0
    while True:
        code, yes, no, k = lines[at]
        if code == seccomp.RETURN:
            return k
        if code == seccomp.LOAD:
            value, jump = words[k], 0
        else:
            tests = {seccomp.EQUAL: value == k, seccomp.ABOVE: value > k}
            tests |= {seccomp.AT_LEAST: value >= k, seccomp.ANY_BIT: value & k}
            jump = yes if tests[code] else no
        at += 1 + jump


@pytest.mark.parametrize("machine", AUDIT_ARCH)
@pytest.mark.parametrize("processes", [1, 3])
def test_the_filter_allows_only_the_listed_calls(machine, processes):
    lines, arch = filter_program(machine, processes), AUDIT_ARCH[machine]
    allowed, partly_allowed = (
        syscall_numbers(ALLOWED, machine),
        syscall_numbers(PARTLY_ALLOWED, machine),
    )
    refused = seccomp.ERRNO | errno.EPERM
    assert max([*allowed.values(), *partly_allowed.values()]) <= seccomp.NEWEST_CALL_NUMBER
    for number in range(seccomp.NEWEST_CALL_NUMBER + 1):
        if number not in partly_allowed.values():
            expected = seccomp.ALLOW if number in allowed.values() else refused
            assert action_of_filter(lines, number, arch=arch) == expected, number
    for number in (500, 0x40000000, 0x40000000 + 41, 0xFFFFFFFF):
        assert action_of_filter(lines, number, arch=arch) == seccomp.ERRNO | errno.ENOSYS
    for other_arch in (0x40000003, 0x40000028, *(set(AUDIT_ARCH.values()) - {arch})):
        assert action_of_filter(lines, 0, arch=other_arch) == seccomp.KILL
    assert len(lines) < 4096


@pytest.mark.parametrize("machine", AUDIT_ARCH)
def test_the_filter_reads_arguments(machine):
    partly_allowed, arch = syscall_numbers(PARTLY_ALLOWED, machine), AUDIT_ARCH[machine]

    def decision(name: str, *arguments: int, processes: int = 1) -> str:
        action = action_of_filter(
            filter_program(machine, processes), partly_allowed[name], (*arguments, 0, 0, 0), arch
        )
        return errno.errorcode[action & 0xFFFF] if action >> 16 == 5 else "ok"

    thread = 0x3D0F00
    assert decision("clone", thread) == decision("clone", thread, processes=2) == "ok"
    assert decision("clone", 17) == decision("clone", 0) == "EAGAIN"
    assert decision("clone", 17, processes=2) == decision("clone", 0x4111, processes=2) == "ok"
    for flag in (0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert (
            decision("clone", flag | 17, processes=2) == decision("clone", thread | flag) == "EPERM"
        )
    assert decision("clone", 0x8000 | 17, processes=2) == "EPERM"  # CLONE_PARENT
    assert decision("clone3") == "ENOSYS"
    assert (
        decision("mmap", 0, 0, 3, 0x22) == decision("mmap", 0, 0, 3, 0x01) == "ok"
    )  # anonymous; a file
    assert decision("mmap", 0, 0, 3, 0x21) == decision("mmap", 0, 0, 3, 0x23) == "ENOMEM"
    assert decision("socketpair", 1) == "ok"
    assert decision("socketpair", 2) == "EPERM"
    assert decision("ioctl", 0, 0x5401) == "ok"
    assert {decision("ioctl", 0, order) for order in (0x5412, 0x541C, 0x8933)} == {"EPERM"}
    assert {decision("prctl", order) for order in (1, 4, 8, 22, 24, 28, 38, 47)} == {"EPERM"}
    assert {decision("fcntl", 0, order) for order in (8, 10, 1024, 1026, 1031, 1033)} == {"EPERM"}
    assert decision("execve") == "EPERM"
    assert decision("execve", processes=2) == "ok"


KERNEL_HEADERS = {
    "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    "aarch64": "/usr/include/asm-generic/unistd.h",
}


@pytest.mark.parametrize("machine", AUDIT_ARCH)
def test_call_numbers_agree_with_the_kernel_headers(machine):
    from attncourse.grading.jail import kernel

    header = Path(KERNEL_HEADERS[machine])
    if not header.exists():
        pytest.skip(f"no {header}")
    lines = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())
    header_numbers = {name: int(number) for name, number in lines}
    header_numbers |= {"newfstatat": 79, "fstat": 80} if machine == "aarch64" else {}
    tables = (ALLOWED, PARTLY_ALLOWED, kernel.CALL_NUMBERS)
    numbers = {k: v for table in tables for k, v in syscall_numbers(table, machine).items()}
    newer_numbers = {"fchmodat2": 452}
    assert {
        n: v for n, v in numbers.items() if header_numbers.get(n, newer_numbers.get(n)) != v
    } == {}
    for table in tables:  # "-" only where the machine has none
        everywhere = (
            syscall_numbers(table, "x86_64").keys() | syscall_numbers(table, "aarch64").keys()
        )
        assert not (everywhere - numbers.keys()) & header_numbers.keys()


# --- layers, and what is said of them -----------------------------------------------------------


def test_missing_landlock_and_seccomp_are_reported(prison):
    code = "result = [name for name, in_force in layers.items() if not in_force]"
    assert prison.inside(code) == []
    assert prison.inside(code, without=["Landlock", "seccomp"]) == ["Landlock", "seccomp"]


def test_the_jail_refuses_to_start_without_namespaces(prison):
    error_type, message = prison.inside("result = 'ran'", without=["namespaces"])
    assert error_type == "JailError"
    assert message.startswith("no jail: user namespaces:")
    assert len(message.splitlines()) == 1


def test_the_jail_refuses_shared_memory_and_threads():
    code = """
import mmap, sys, threading; sys.path.insert(0, {root!r})
from attncourse.grading.jail.confine import require_confinable
require_confinable()
{more}
require_confinable()
"""
    for setup, message in (
        ("shared = mmap.mmap(-1, 4096)", "no shared memory"),
        (
            "e = threading.Event(); threading.Thread(target=e.wait, daemon=True).start()",
            "one thread",
        ),
    ):
        command = [sys.executable, "-c", code.format(root=str(ROOT), more=setup)]
        process = subprocess.run(command, capture_output=True, text=True)
        assert "JailError: no jail: expected" in process.stderr.splitlines()[-1]
        assert message in process.stderr


def test_the_probe_is_quick_and_finds_every_layer():
    require_jail_or_skip()
    jail._probed_layers.cache_clear()
    start = time.monotonic()
    found_layers = jail.available_layers()
    assert [layer.name for layer in found_layers] == list(layers.PROTECTS)
    assert time.monotonic() - start < 20  # 0.2 s on a machine that does nothing else
    assert {layer.name for layer in found_layers if layer.required} == set(layers.REQUIRED_LAYERS)
    assert jail.missing_required_layers() == []


def test_the_probe_tries_effects_not_settings(prison):
    """A layer that is set up without an error but has no effect is reported missing."""
    code = f"""
import sys; sys.path.insert(0, {str(prison.driver.parents[2])!r})
from attncourse.grading.jail import confine, landlock, probe
confine.set_limits = lambda *anything: None
landlock.restrict_thread = lambda *anything: 1
probe.main()
"""
    process = subprocess.run(
        [*prison.command, "-I", "-c", code], capture_output=True, text=True, cwd="/"
    )
    layer_by_name = {layer["name"]: layer for layer in json.loads(process.stdout)}
    assert {name for name, layer in layer_by_name.items() if not layer["in_force"]} == {
        "limits",
        "Landlock",
    }


@pytest.mark.parametrize("function", ["pidfd_open", "unshare", "setns", "memfd_create"])
def test_an_older_python_still_has_every_layer(function):
    """Conda's Python is built for an old C library and lacks some functions."""
    require_jail_or_skip()
    assert missing_layers_of_probe(f"import os; vars(os).pop({function!r}, None)") == {}


@pytest.mark.parametrize("function", ["setsid", "umask", "chdir"])
def test_a_python_without_jail_functions_is_reported(function):
    missing = missing_layers_of_probe(f"import os; del os.{function}")
    assert missing
    first = next(iter(missing.values()))
    assert function in first["detail"]
    assert first["remedy"] == layers.OTHER_PYTHON


def missing_layers_of_probe(setup: str) -> dict[str, dict]:
    """Return the missing layers by name, probed in a Python that has run ``setup``."""
    code = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
from attncourse.grading.jail import jail, kernel, probe
{setup}
probe.main()
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = process.stdout.splitlines()
    assert lines, process.stderr
    return {layer["name"]: layer for layer in json.loads(lines[-1]) if not layer["in_force"]}


@pytest.mark.parametrize(
    ("release", "code", "remedy_words"),
    [
        ("5.4.0-200-generic", errno.ENOSYS, "needs Linux 5.14"),
        ("6.8.0-40-generic", errno.ENOSYS, "--security-opt"),
        ("5.4.0-200-generic", errno.EPERM, "--security-opt"),
    ],
)
def test_the_remedy_distinguishes_kernel_and_container(monkeypatch, release, code, remedy_words):
    monkeypatch.setattr(layers.platform, "release", lambda: release)
    error = OSError(code, "open_tree: x")
    remedy = layers.remedy_for_error(layers.PROCESSES, error)
    assert remedy_words in layers.missing_layer(layers.PROCESSES, str(error), remedy).remedy


def test_free_name_avoids_existing_folders(tmp_path):
    (tmp_path / "course").mkdir()
    (tmp_path / "course_").mkdir()
    assert rootfs.free_name(str(tmp_path / "course")) == str(tmp_path / "course__")
    assert rootfs.free_name(str(tmp_path / "submission")) == str(tmp_path / "submission")


def test_the_apparmor_profile_names_the_resolved_program(tmp_path, monkeypatch):
    real = tmp_path / "py[3]"
    real.touch()
    (tmp_path / "python").symlink_to(real)
    text = apparmor.profile_text(str(tmp_path / "python"))
    assert f'"{tmp_path}/py\\[3\\]" flags=(unconfined)' in text
    assert "  userns,\n" in text


def test_doctor_writes_a_profile_before_naming_the_switch(tmp_path, monkeypatch):
    setting = tmp_path / "proc" / apparmor.SETTING
    setting.parent.mkdir(parents=True)
    setting.write_text("1\n")
    monkeypatch.setattr(layers, "SYSTEM", tmp_path / "proc")
    monkeypatch.setattr(layers, "CONTAINER_MARKS", ())
    monkeypatch.chdir(tmp_path)
    # As on Ubuntu: the namespace is made, and what is done in it is refused.
    held, refused = (
        layers.held_layer(layers.USER),
        layers.missing_layer(layers.PROCESSES, "sethostname: no"),
    )
    monkeypatch.setattr(jail, "_probed_layers", lambda: (held, refused))
    result = CliRunner(env={"COLUMNS": "150"}).invoke(app, ["doctor"])
    assert result.exit_code == 1
    output = " ".join(result.output.split())
    assert output.index("AppArmor profile") < output.index(
        "apparmor_restrict_unprivileged_userns=0"
    )
    assert "/etc/sysctl.d/" in output
    assert "security-opt" not in output
    assert f"sudo cp {tmp_path}/attncourse.apparmor /etc/apparmor.d/attncourse" in result.output
    assert (tmp_path / "attncourse.apparmor").read_text() == apparmor.profile_text()
    monkeypatch.setattr(layers, "CONTAINER_MARKS", (tmp_path,))
    assert "on the machine that runs it" in layers.missing_layer(layers.USER, "").remedy


PROBE_MESSAGES = {  # start of the probe's Python, and the detail reported of a layer
    "print('Welcome!'); print(sys.argv[0])": "in force",
    "print('Welcome!')": "Welcome!",
    "sys.exit('libpython3.11.so: no such file')": "libpython3.11.so: no such file",
    "os._exit(7)": "exit status 7",
    "signal.pause()": "did not end in 1 s",
}


@pytest.mark.parametrize("startup", PROBE_MESSAGES)
def test_every_output_of_the_probe_is_explained(monkeypatch, startup):
    layer_json = json.dumps([vars(layers.held_layer(layers.USER, "in force"))])
    code = f"import os, signal, sys; sys.argv[0] = {layer_json!r}; {startup}"
    run_process = subprocess.run
    monkeypatch.setattr(
        jail.subprocess,
        "run",
        lambda command, **more: run_process([sys.executable, "-c", code], **more),
    )
    if "pause" in startup:
        monkeypatch.setattr(jail, "PROBE_SECONDS", 1)
    first, *_ = jail._probed_layers.__wrapped__()
    assert PROBE_MESSAGES[startup] in first.detail
    assert first.in_force is (PROBE_MESSAGES[startup] == "in force")


def test_outside_linux_the_jail_refuses_to_start():
    code = f"""
import sys; sys.platform = "darwin"; sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from attncourse.grading.jail.jail import Jail, available_layers, missing_required_layers, JailError
from attncourse.grading.limits import Limits
assert not any(layer.in_force for layer in available_layers())
assert len(missing_required_layers()) == 5
try: Jail(Path(), Limits()).enter()
except JailError as error: print(error)
"""
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True
    )
    assert process.stdout.startswith("no jail: expected Linux"), process.stderr
    assert "WSL" in process.stdout


def test_doctor_says_what_to_do(monkeypatch):
    required_layers = [layers.held_layer(name) for name in layers.REQUIRED_LAYERS]
    no_landlock = layers.missing_layer(
        layers.LANDLOCK, "landlock_create_ruleset: Function not implemented"
    )
    runner = CliRunner(env={"COLUMNS": "150"})
    monkeypatch.setattr(jail, "_probed_layers", lambda: (*required_layers, no_landlock))
    result = runner.invoke(app, ["doctor"])
    assert result.exit_code == 0, result.output
    assert "the jail holds; Landlock would make it stronger" in result.output
    assert "lsm=" in result.output
    for word in ("torch", "nbgrader", "cores", "MB for each of"):
        assert word in result.output
    no_namespaces = layers.missing_layer(layers.USER, "unshare: Operation not permitted")
    monkeypatch.setattr(
        jail, "_probed_layers", lambda: (no_namespaces, *required_layers[1:], no_landlock)
    )
    result = runner.invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "attncourse grade refuses" in result.output


@pytest.mark.parametrize(
    ("setting", "value", "advice"),
    [
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("user/max_user_namespaces", "0", "user.max_user_namespaces=16384"),
        ("user/max_user_namespaces", "9", "--security-opt seccomp=unconfined"),
    ],
)
def test_the_remedy_names_the_setting_at_fault(tmp_path, monkeypatch, setting, value, advice):
    (tmp_path / setting).parent.mkdir()
    (tmp_path / setting).write_text(f"{value}\n")
    monkeypatch.setattr(layers, "SYSTEM", tmp_path)
    assert advice in layers.missing_layer(layers.USER, "").remedy


def test_a_prefix_in_the_course_folder_shows_its_libraries_only(tmp_path, monkeypatch):
    for name in ("solutions", "lib/python3.11/site-packages"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    root = rootfs.Root(tmp_path / "view")
    assert str(tmp_path / "lib") in root.places
    assert root.place(str(tmp_path / "solutions")) == ""


def test_a_repository_among_system_files_is_covered(tmp_path):
    for name in ("solutions", ".venv/lib/python", ".venv/bin"):
        (tmp_path / name).mkdir(parents=True)
    paths = rootfs.paths_without(str(tmp_path), [str(tmp_path / ".venv/lib")])
    assert sorted(paths) == [str(tmp_path / ".venv/bin"), str(tmp_path / "solutions")]
    assert rootfs.paths_without(str(tmp_path), []) == [str(tmp_path)]


def test_doctor_agrees_with_the_probe_on_this_machine():
    result = CliRunner(env={"COLUMNS": "150"}).invoke(app, ["doctor"])
    assert result.exit_code == bool(jail.missing_required_layers())
    assert doctor.jail_in_a_line(jail.available_layers()) in result.output
