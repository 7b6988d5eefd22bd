"""Which system calls a submission's process may make: a filter that the kernel runs.

An allow-list. What is not on it fails with EPERM, as if there were no right to it; what a newer C
library only tries fails with ENOSYS, and it falls back. A new process fails with EAGAIN where the
limit is one.
"""

import ctypes
import errno
import struct
from itertools import count, groupby

# name:x86_64:aarch64, with - where the architecture has no such call. A call newer than
# NEWEST_CALL_NUMBER is refused before this table is read: raise that too, and put among the ENOSYS
# of `partial_rule` each call up to it for which the C library has an older form.
ALLOWED = """
read:0:63 write:1:64 readv:19:65 writev:20:66 pread64:17:67 pwrite64:18:68 preadv:295:69
pwritev:296:70 preadv2:327:286 pwritev2:328:287 lseek:8:62 open:2:- openat:257:56
openat2:437:437 creat:85:- close:3:57 close_range:436:436 dup:32:23 dup2:33:- dup3:292:24
pipe:22:- pipe2:293:59 sendfile:40:71 copy_file_range:326:285 fallocate:285:47
fadvise64:221:223 truncate:76:45 ftruncate:77:46 fsync:74:82 fdatasync:75:83

stat:4:- fstat:5:80 lstat:6:- newfstatat:262:79 statx:332:291 statfs:137:43 fstatfs:138:44
access:21:- faccessat:269:48 faccessat2:439:439 readlink:89:- readlinkat:267:78 getdents:78:-
getdents64:217:61 getcwd:79:17 chdir:80:49 fchdir:81:50 mkdir:83:- mkdirat:258:34 rmdir:84:-
unlink:87:- unlinkat:263:35 rename:82:- renameat:264:38 renameat2:316:276 link:86:-
linkat:265:37 symlink:88:- symlinkat:266:36 chmod:90:- fchmod:91:52 fchmodat:268:53
umask:95:166 utime:132:- utimes:235:- utimensat:280:88 getxattr:191:8 lgetxattr:192:9
fgetxattr:193:10 listxattr:194:11 llistxattr:195:12 flistxattr:196:13

mprotect:10:226 munmap:11:215 mremap:25:216 msync:26:227 madvise:28:233 brk:12:214
membarrier:324:283 futex:202:98 set_robust_list:273:99 set_tid_address:218:96 rseq:334:293
sched_yield:24:124 sched_getaffinity:204:123 sched_getparam:143:121 sched_getscheduler:145:120
sched_get_priority_max:146:125 sched_get_priority_min:147:126 getcpu:309:168 exit:60:93
exit_group:231:94 wait4:61:260 waitid:247:95

rt_sigaction:13:134 rt_sigprocmask:14:135 rt_sigreturn:15:139 rt_sigpending:127:136
rt_sigsuspend:130:133 rt_sigtimedwait:128:137 sigaltstack:131:132 restart_syscall:219:128
kill:62:129 tgkill:234:131 pause:34:- alarm:37:- getitimer:36:102 setitimer:38:103

time:201:- gettimeofday:96:169 clock_gettime:228:113 clock_getres:229:114
clock_nanosleep:230:115 nanosleep:35:101 times:100:153 poll:7:- ppoll:271:73 select:23:-
pselect6:270:72 epoll_create:213:- epoll_create1:291:20 epoll_ctl:233:21 epoll_wait:232:-
epoll_pwait:281:22 epoll_pwait2:441:441 eventfd:284:- eventfd2:290:19

sendto:44:206 recvfrom:45:207 shutdown:48:210 getsockname:51:204 getpeername:52:205
getsockopt:55:209

getpid:39:172 getppid:110:173 gettid:186:178 getpgrp:111:- getpgid:121:155 getsid:124:156
getuid:102:174 geteuid:107:175 getgid:104:176 getegid:108:177 getresuid:118:148
getresgid:120:150 getgroups:115:158 getpriority:140:141 getrlimit:97:163 prlimit64:302:261
getrusage:98:165 sysinfo:99:179 uname:63:160 getrandom:318:278
"""
PARTLY_ALLOWED = """
ioctl:16:29 fcntl:72:25 prctl:157:167 socketpair:53:199 clone:56:220 clone3:435:435 fork:57:-
vfork:58:- mmap:9:222 execve:59:221 execveat:322:281 fchmodat2:452:452
arch_prctl:158:-
"""
# For these calls, the argument that counts and the values that it may have.
ALLOWED_VALUES = {
    "ioctl": (1, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),  # TCGETS … FIONREAD, FIONBIO …
    "fcntl": (1, (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032)),  # no owner, lease or pipe size
    "prctl": (0, (2, 3, 15, 16, 21, 23, 39, 0x53564D41)),  # PR_GET_…, PR_SET_NAME, PR_SET_VMA
    "arch_prctl": (0, (0x1002, 0x1003)),  # where a thread's data is: every program starts so
    "socketpair": (0, (1,)),  # AF_UNIX; socket itself is refused
}
CLONE_THREAD = 0x10000
MAP_SHARED, MAP_ANONYMOUS = 0x01, 0x20
REFUSED_CLONE_FLAGS = 0x7E020000 | 0x8000 | 0x2000  # CLONE_NEW*, CLONE_PARENT, CLONE_PTRACE
NEWEST_CALL_NUMBER = 462  # the highest number that this table was made with

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
LOAD, EQUAL, ABOVE, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000

Instruction = tuple[int, int, int, int]


def syscall_numbers(table: str, machine: str) -> dict[str, int]:
    """Return the system calls in a table with their numbers on a machine's architecture."""
    column = {"x86_64": 1, "aarch64": 2}.get(machine)
    rows = [entry.split(":") for entry in table.split()]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"} if column else {}


def filter_program(machine: str, processes: int) -> list[Instruction]:
    """Return the filter's instructions, each (code, jump if true, jump if false, operand).

    With one process, the calls that start another are refused.
    """
    lines = [
        # The architecture first: the same numbers mean other calls in another one.
        (LOAD, 0, 0, 4),
        (EQUAL, 1, 0, AUDIT_ARCH[machine]),
        filter_result(KILL),
        (LOAD, 0, 0, 0),  # the call's number
        (ABOVE, 0, 1, NEWEST_CALL_NUMBER),  # also the x32 calls, whose numbers have a high bit
        filter_result(ERRNO | errno.ENOSYS),
    ]
    for name, number in syscall_numbers(PARTLY_ALLOWED, machine).items():
        block = partial_rule(name, processes)
        lines += [(EQUAL, 0, len(block), number), *block]
    for first, last in runs_of_numbers(sorted(syscall_numbers(ALLOWED, machine).values())):
        lines += [(AT_LEAST, 0, 2, first), (ABOVE, 1, 0, last), filter_result(ALLOW)]
    return [*lines, filter_result(ERRNO | errno.EPERM)]


def partial_rule(name: str, processes: int) -> list[Instruction]:
    """Return the filter's instructions for a call that is allowed with some arguments only."""
    # Newer forms of calls that are on the list: the C library falls back to those. What clone3
    # asks for lies in memory, where no filter can look.
    if name in ("clone3", "fchmodat2"):
        return [filter_result(ERRNO | errno.ENOSYS)]
    if name == "clone":
        # The first of the arguments, which begin at byte 16 with eight bytes each.
        block = [
            (LOAD, 0, 0, 16),
            (ANY_BIT, 0, 1, REFUSED_CLONE_FLAGS),
            filter_result(ERRNO | errno.EPERM),
        ]
        if processes == 1:
            block += [(ANY_BIT, 1, 0, CLONE_THREAD), filter_result(ERRNO | errno.EAGAIN)]
        return [*block, filter_result(ALLOW)]
    if name == "mmap":  # shared memory that is no file counts as none of a process's own data
        block = [(LOAD, 0, 0, 16 + 8 * 3), (ANY_BIT, 0, 2, MAP_ANONYMOUS)]
        block += [(ANY_BIT, 0, 1, MAP_SHARED), filter_result(ERRNO | errno.ENOMEM)]
        return [*block, filter_result(ALLOW)]
    if name in ALLOWED_VALUES:
        argument, values = ALLOWED_VALUES[name]
        tests = [line for v in values for line in ((EQUAL, 0, 1, v), filter_result(ALLOW))]
        return [(LOAD, 0, 0, 16 + 8 * argument), *tests, filter_result(ERRNO | errno.EPERM)]
    if processes > 1:
        return [filter_result(ALLOW)]
    return [filter_result(ERRNO | (errno.EPERM if name.startswith("exec") else errno.EAGAIN))]


def filter_result(value: int) -> Instruction:
    """Return the instruction that ends the filter with this result."""
    return (RETURN, 0, 0, value)


def runs_of_numbers(values: list[int]) -> list[tuple[int, int]]:
    """Return runs of consecutive numbers in a sorted list, each as (first, last)."""
    runs = groupby(values, key=lambda value, place=count(): value - next(place))
    return [(run[0], run[-1]) for run in (list(numbers) for _, numbers in runs)]


class Filter:
    """A filter program as the kernel takes it: ``address`` is where its header is in memory."""

    def __init__(self, machine: str, processes: int):
        lines = filter_program(machine, processes)
        self.code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in lines))
        pointer = ctypes.addressof(self.code)
        self.header = ctypes.create_string_buffer(struct.pack("H6xP", len(lines), pointer))
        self.address = ctypes.addressof(self.header)
