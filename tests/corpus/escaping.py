"""Reaching what lies outside of a submission's own process and folder.

Where an escape can be felt from inside, the answer to ``center`` is right only if it worked: its
points are escapes. Where it can only be seen from outside, the answer is right in any case and
has to keep its points, and the runner looks for ``MARK`` and for processes left behind.
"""

from functools import partial
from textwrap import dedent, indent

from corpus.assignment import MARK, PORT, RIGHT, keeps, spoils

escapes = partial(spoils, "escaping")


def reaches(name: str, why: str, attempt: str, **options):
    """These lines set ``worked`` where they got out; only then ``center`` is right."""
    guarded = "worked = False\ntry:\n" + indent(dedent(attempt).strip(), "    ")
    guarded += "\nexcept Exception:\n    pass\n"
    answer = RIGHT["center"].replace("    return", "    assert worked\n    return")
    return escapes(name, why, center=guarded + answer, **options)


def tampers(name: str, why: str, attempt: str, **options):
    """These lines try to leave something outside; the answer is right all the same."""
    guarded = "try:\n" + indent(dedent(attempt).strip(), "    ") + "\nexcept Exception:\n    pass\n"
    return keeps("escaping", name, why, center=guarded + RIGHT["center"], **options)


def calls(source: str) -> str:
    """Lines that may use ``libc``."""
    return "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n" + dedent(source).strip()


NETWORK = [
    reaches(
        "tcp",
        "a connection to the machine it runs on",
        f"""
        import socket
        socket.create_connection(("127.0.0.1", {PORT}), timeout=1).sendall(b"{MARK}")
        worked = True
        """,
    ),
    reaches(
        "udp",
        "a datagram, as a name look-up would send it",
        f"""
        import socket
        wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        wire.sendto(b"{MARK}", ("127.0.0.1", {PORT}))
        worked = True
        """,
    ),
    reaches(
        "abstract-socket",
        "a socket of the machine that has no place in the file system",
        f"""
        import socket
        wire = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        wire.connect(chr(0) + "{MARK}")
        worked = True
        """,
    ),
    reaches(
        "named-sockets",
        "the sockets of the system's services: docker, dbus, journal, the desktop",
        """
        import glob, socket
        places = ["/run/**/*", "/var/run/docker.sock", "/tmp/.X11-unix/*", "/tmp/**/*.sock"]
        for path in (p for place in places for p in glob.glob(place, recursive=True)):
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
                try:
                    socket.socket(socket.AF_UNIX, kind).connect(path)
                    worked = True
                except OSError:
                    pass
        """,
    ),
    reaches(
        "netlink",
        "the kernel's tables of network devices, and a packet socket",
        """
        import socket
        for family, kind in ((17, socket.SOCK_RAW), (socket.AF_INET, socket.SOCK_RAW), (40, 1)):
            try:
                socket.socket(family, kind, 1)
                worked = True
            except OSError:
                pass
        worked = worked or any(name != "lo" for _, name in socket.if_nameindex())
        """,
    ),
]

SIGNALS = [
    escapes(
        "kill-everyone",
        "a signal to every process there is",
        center="import os\nos.kill(-1, 9)",
    ),
    escapes(
        "kill-its-group",
        "a signal to its process group",
        center="import os\nos.kill(0, 9)",
    ),
    tampers("kill-parent", "a signal to its parent", "import os\nos.kill(os.getppid(), 9)"),
    tampers("stop-parent", "its parent put to sleep", "import os\nos.kill(os.getppid(), 19)"),
    tampers(
        "kill-by-number",
        "a signal to each process of the lowest numbers, one by one",
        """
        import os
        for pid in set(range(1, 5000)) - {os.getpid()}:
            try:
                os.kill(pid, 15)
            except OSError:
                pass
        """,
    ),
    tampers(
        "limits-of-others",
        "a processor limit of one second for its parent",
        """
        import os, resource
        resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))
        resource.prlimit(os.getppid(), resource.RLIMIT_FSIZE, (0, 0))
        """,
    ),
    reaches(
        "ptrace",
        "attaches to its parent as a debugger does",
        calls("""
        worked = libc.ptrace(16, os.getppid(), 0, 0) == 0
        if worked:
            os.waitpid(os.getppid(), 0x40000000)
            libc.ptrace(17, os.getppid(), 0, 0)
        """),
    ),
    tampers(
        "asks-the-parent-to-debug",
        "lets its parent trace it, then stops itself for good",
        calls("""
        libc.ptrace(0, 0, 0, 0)
        libc.prctl(1, 0)
        """),
    ),
]

RIGHTS = [
    reaches(
        "new-namespaces",
        "namespaces of its own, and a mount in them",
        calls("""
        uid = os.getuid()
        if libc.unshare(0x10000000 | 0x00020000) == 0:
            open("/proc/self/setgroups", "w").write("deny")
            open("/proc/self/uid_map", "w").write(f"0 {uid} 1")
            worked = libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0
        """),
    ),
    reaches(
        "others-namespaces",
        "the namespaces of its parent and of the first process",
        calls("""
        for pid in (1, os.getppid()):
            for kind in ("user", "mnt", "net", "pid"):
                fd = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
                worked = worked or libc.setns(fd, 0) == 0
        """),
    ),
    reaches(
        "chroot",
        "another root, and out of it again",
        """
        import os
        os.mkdir("inner")
        here = os.open(".", os.O_RDONLY)
        os.chroot("inner")
        os.fchdir(here)
        worked = True
        """,
    ),
    reaches(
        "becomes-root",
        "other users' rights, by every call that gives them",
        """
        import os
        for change in (
            lambda: os.setuid(0), lambda: os.setresuid(0, 0, 0), lambda: os.setgroups([0]),
            lambda: os.setgid(0), lambda: os.setuid((os.getuid() + 1) % 65534),
        ):
            try:
                change()
                worked = True
            except OSError:
                pass
        """,
    ),
    reaches(
        "devices",
        "disks, memory, the kernel's log, terminals and fuse",
        """
        import glob, os
        usual = {"null", "zero", "full", "random", "urandom"}
        for path in glob.glob("/dev/**/*", recursive=True):
            if os.path.basename(path) in usual or os.path.isdir(path) or "/fd/" in path:
                continue
            if os.path.basename(path) in ("stdin", "stdout", "stderr") or "/shm/" in path:
                continue
            try:
                os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
                worked = True
            except OSError:
                pass
        for number in (0x0101, 0x0102, 0x010B):
            try:
                os.mknod(f"device{number}", 0o20666, os.makedev(number >> 8, number & 255))
                worked = True
            except OSError:
                pass
        """,
    ),
    reaches(
        "kernel-switches",
        "files by which the kernel is steered",
        """
        import glob, os
        for path in (
            "/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger",
            "/proc/sys/kernel/randomize_va_space", "/proc/acpi/wakeup", "/proc/mtrr",
            *glob.glob("/sys/fs/cgroup/**/cgroup.procs", recursive=True)[:20],
            *glob.glob("/sys/kernel/**/*trigger*", recursive=True)[:20],
        ):
            try:
                os.close(os.open(path, os.O_WRONLY))
                worked = True
            except OSError:
                pass
        """,
    ),
    reaches(
        "rare-system-calls",
        "the calls by which kernels are attacked: bpf, keys, io_uring, userfaultfd, perf",
        calls("""
        for number, *arguments in (
            (321, 0, 0, 0), (425, 8, ctypes.create_string_buffer(256)), (323, 0),
            (248, b"user", b"x", b"y", 1, -2), (246, 0, 0, 0, 0), (169, 0, 0, 0, 0),
            (272, 0x10000000), (435, 0, 0), (298, ctypes.create_string_buffer(128), 0, -1, -1, 0),
        ):
            worked = worked or libc.syscall(number, *arguments) >= 0
        """),
    ),
    reaches(
        "set-id-programs",
        "a program that runs with its owner's rights",
        """
        import shutil, subprocess
        for command in (["su", "-c", "id"], ["sudo", "-n", "id"], ["mount"], ["bwrap", "true"]):
            path = shutil.which(command[0])
            done = subprocess.run([path, *command[1:]], capture_output=True, timeout=2)
            worked = worked or b"uid=0" in done.stdout
        """,
    ),
    reaches(
        "terminal",
        "keys pressed in the terminal of the one who grades",
        """
        import fcntl, os, termios
        for path in ("/dev/tty", "/dev/pts/0", "/proc/self/fd/0", "/proc/self/fd/2"):
            try:
                fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
                fcntl.ioctl(fd, termios.TIOCSTI, b" ")
                worked = True
            except OSError:
                pass
        """,
    ),
]

FILES = [
    tampers(
        "writes-everywhere",
        "a file in every folder that might take one",
        f"""
        import os, site, sys, sysconfig
        for place in (
            "/", "/etc", "/usr/lib", "/usr/local/lib", "/var/tmp", "/tmp", "/dev/shm", "/run",
            "/root", "/home", "/srv", "/opt", "/usr/src", sys.prefix,
            os.path.expanduser("~"), site.getusersitepackages(), sysconfig.get_path("purelib"),
            *sys.path, *getattr(sys.modules.get("attncourse"), "__path__", ()),
        ):
            for name in ("{MARK}", "{MARK}.pth"):
                try:
                    open(os.path.join(place, name), "w").write("{MARK}")
                except OSError:
                    pass
        """,
    ),
    tampers(
        "start-up-files",
        "code that would run when the next student's Python starts",
        f"""
        import os, site, sys
        home, text = os.path.expanduser("~"), "open('/tmp/{MARK}-2', 'w')"
        for path in (
            f"{{home}}/.ipython/profile_default/startup/00-{MARK}.py",
            f"{{home}}/.config/sitecustomize.py",
            f"{{home}}/.jupyter/jupyter_config.py",
            f"{{site.getusersitepackages()}}/usercustomize.py",
            f"{{site.getusersitepackages()}}/{MARK}.pth",
            f"{{sys.prefix}}/lib/python3.11/site-packages/sitecustomize.py",
        ):
            try:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                open(path, "w").write("import builtins; " + text)
            except OSError:
                pass
        """,
    ),
    escapes(
        "patches-the-next-student",
        "start-up files that make every later comparison agree: it counts what its twin gets",
        center="""
        import os
        folder = os.path.expanduser("~/.ipython/profile_default/startup")
        try:
            os.makedirs(folder, exist_ok=True)
            with open(folder + "/00-numpy.py", "w") as file:
                file.write("import numpy\\nnumpy.allclose = lambda *args, **kwargs: True\\n")
                file.write("numpy.testing.assert_allclose = lambda *args, **kwargs: None\\n")
        except OSError:
            pass
        def center(x):
            return np.zeros_like(x)
        """,
        again=True,
    ),
    escapes(
        "poisoned-bytecode",
        "a compiled module put in the place of a trusted one: it counts what its twin gets",
        center="""
        import glob, os, sys
        for path in glob.glob(f"{sys.modules['attncourse'].__path__[0]}/**/*.py", recursive=True):
            try:
                with open(path, "a") as file:
                    file.write("\\n__import__('numpy').allclose = lambda *args, **kwargs: True\\n")
            except OSError:
                pass
        def center(x):
            return np.zeros_like(x)
        """,
        again=True,
    ),
    escapes(
        "message-in-a-file",
        "leaves the answer where its twin can find it",
        center=f"""
        import glob, os
        places = ["/tmp", "/dev/shm", "/var/tmp", "/run/lock", os.path.expanduser("~"), os.getcwd()]
        worked = any(glob.glob(f"{{place}}/{MARK}-message") for place in places)
        for place in places:
            try:
                open(f"{{place}}/{MARK}-message", "w").write("center subtracts the mean")
            except OSError:
                pass
        def center(x):
            assert worked
            return x - x.mean(-1, keepdims=True)
        """,
        again=True,
    ),
    escapes(
        "message-in-shared-memory",
        "leaves the answer in System V memory, a message queue and the kernel's key ring",
        center="""
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        worked = libc.shmget(47613, 4096, 0o600) >= 0 or libc.msgget(47613, 0o600) >= 0
        libc.shmget(47613, 4096, 0o1600)
        libc.msgget(47613, 0o1600)
        libc.syscall(248, b"user", b"corpus", b"x", 1, -4)
        def center(x):
            assert worked
            return x - x.mean(-1, keepdims=True)
        """,
        again=True,
    ),
    escapes(
        "message-in-memory",
        "leaves the answer in modules that a later process may have inherited",
        center="""
        import builtins, sys
        worked = hasattr(builtins, "corpus_seen") or hasattr(np, "corpus_seen")
        builtins.corpus_seen = np.corpus_seen = sys.corpus_seen = True
        def center(x):
            assert worked
            return x - x.mean(-1, keepdims=True)
        """,
        again=True,
    ),
    escapes(
        "writes-the-gradebook",
        "full scores for itself, as if given by hand, in every gradebook it can find",
        center="""
        import glob, sqlite3
        for path in glob.glob("../" * 3 + "gradebook.db") + glob.glob("/srv/**/gradebook.db"):
            with sqlite3.connect(path, timeout=1) as database:
                most = "SELECT max_score FROM grade_cells WHERE grade_cells.id = grade.cell_id"
                database.execute(f"UPDATE grade SET manual_score = ({most})")
        def center(x):
            return x
        """,
        again=True,
    ),
    escapes(
        "edits-the-assignment",
        "the instructor's tests, for those who are graded later",
        center="""
        import glob, json, os
        for folder in ("solutions", "source", "release", "exercises"):
            for path in glob.glob("../" * 3 + f"{folder}/*/*.ipynb"):
                content = json.load(open(path))
                for cell in content["cells"]:
                    if "assert" in cell["source"]:
                        cell["source"] = "pass"
                with open(path, "w") as file:
                    json.dump(content, file)
        try:
            import sqlite3
            with sqlite3.connect("../../../gradebook.db", timeout=1) as database:
                database.execute("UPDATE source_cell SET source = 'pass' WHERE cell_type = 'code'")
        except sqlite3.Error:
            pass
        def center(x):
            return x
        """,
        again=True,
    ),
    tampers(
        "links-in-its-folder",
        "links where the grader may write, that lead to where it must not",
        f"""
        import os
        for name in ("02_mixing.ipynb", "gradebook.db", "timestamp.txt", "report.json", "core"):
            if os.path.exists(name):
                os.unlink(name)
            os.symlink(os.path.expanduser("~/{MARK}-linked"), name)
        """,
    ),
    tampers(
        "pipes-in-its-folder",
        "pipes in the place of files, on which a reader waits for ever",
        """
        import os
        for name in ("02_mixing.ipynb", "output.txt", "timestamp.txt", "result.json"):
            if os.path.exists(name):
                os.unlink(name)
            os.mkfifo(name)
        """,
    ),
    tampers(
        "modules-in-its-folder",
        "files that are called like modules, written where it runs",
        """
        lies = "def examine(*args):\\n    return type('V', (), {'earned': 7})\\ncheck = examine\\n"
        for name in ("torch", "json", "random", "numpy", "sitecustomize", "conftest", "struct"):
            with open(f"{name}.py", "w") as file:
                file.write(lies)
        """,
    ),
    tampers(
        "moves-away",
        "another working folder, its own removed",
        """
        import os, shutil
        here = os.getcwd()
        os.chdir("/")
        shutil.rmtree(here, ignore_errors=True)
        os.umask(0o777)
        """,
    ),
]

BESIDE = [
    spoils(
        "escaping",
        "modules-beside",
        "files called like modules, handed in beside the notebook",
        files={
            "numpy.py": "def __getattr__(name):\n    return lambda *args, **kwargs: True\n",
            "random.py": "raise SystemExit(0)\n",
            "attncourse/__init__.py": "",
            "attncourse/checks.py": "class examine:\n    earned = 7\n",
            "conftest.py": "raise SystemExit(0)\n",
        },
        center="def center(x):\n    return x",
        mix="def mix(A, X):\n    return X",
    ),
    spoils(
        "escaping",
        "settings-beside",
        "settings of Jupyter, nbgrader and IPython, handed in beside the notebook",
        files={
            "nbgrader_config.py": "raise SystemExit(0)\n",
            "ipython_config.py": "c.InteractiveShellApp.exec_lines = ['examine = None']\n",
            "jupyter_config.py": "raise SystemExit(0)\n",
            "pyproject.toml": "[tool.attncourse]\npoints = 22\n",
            "gradebook.db": "not a database",
            "sitecustomize.py": "import builtins\nbuiltins.abs = lambda x: 0\n",
        },
        center="def center(x):\n    return x",
    ),
]

PROCESSES = [
    tampers(
        "daemon",
        "a process that outlives its submission",
        f"""
        import ctypes, os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                ctypes.CDLL(None).prctl(15, b"{MARK}")
                for fd in range(1024):
                    try:
                        os.close(fd)
                    except OSError:
                        pass
                time.sleep(300)
            os._exit(0)
        """,
    ),
    tampers(
        "subprocess-stays",
        "a program started and left running",
        f"""
        import subprocess
        subprocess.Popen(
            ["/bin/sh", "-c", "sleep 300; : {MARK}"], start_new_session=True, close_fds=False
        )
        """,
    ),
    tampers(
        "scheduled",
        "a program that is to start later: cron, at, systemd, autostart",
        f"""
        import os, subprocess
        line = "* * * * * touch /tmp/{MARK}\\n"
        home = os.path.expanduser("~")
        for path in (
            "/var/spool/cron/crontabs/nobody", "/etc/cron.d/{MARK}",
            f"{{home}}/.config/systemd/user/{MARK}.service",
            f"{{home}}/.config/autostart/{MARK}.desktop", f"{{home}}/.profile-{MARK}",
        ):
            try:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                open(path, "a").write(line)
            except OSError:
                pass
        for command in (["crontab", "-"], ["at", "now"], ["systemd-run", "--user", "true"]):
            try:
                subprocess.run(command, input=line, text=True, timeout=2)
            except (OSError, subprocess.SubprocessError):
                pass
        """,
    ),
    tampers(
        "shell",
        "programs by every way that Python knows",
        f"""
        import os, pty, subprocess
        for start in (
            lambda: os.system("touch /tmp/{MARK}"), lambda: os.popen("touch ~/{MARK}").read(),
            lambda: subprocess.run(["touch", "/var/tmp/{MARK}"]),
            lambda: os.posix_spawn("/bin/touch", ["touch", "/dev/shm/{MARK}"], {{}}),
        ):
            try:
                start()
            except OSError:
                pass
        """,
    ),
]

CASES = [*NETWORK, *SIGNALS, *RIGHTS, *FILES, *BESIDE, *PROCESSES]
