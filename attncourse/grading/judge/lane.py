"""A lane's process: the checker, one submission at a time, and its zygote beside it.

``python -m attncourse.grading.judge.lane LIBRARY,… FD,LIFELINE …`` imports the libraries and, where
several lanes start together, divides into them. Each forks its zygote while it knows no secret, and
is from then on the checker.
"""

import gc
import importlib
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from typing import Any

from attncourse.grading.judge.lanes import remove_folder
from attncourse.grading.judge.wire.frames import receive_frame, send_frame


def main() -> None:
    """Import the libraries, fork into as many lanes as were asked for, and serve as one of them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides what an interrupt means
    libraries, *ends = sys.argv[1:]
    places = [tuple(map(int, pair.split(","))) for pair in ends]
    drivers = [socket.socket(fileno=end) for end, _ in places]
    # What is imported stays: the collector would go through it in vain.
    gc.disable()
    try:
        load_libraries(list(filter(None, libraries.split(","))))
    except Exception as problem:
        for driver in drivers:
            send_frame(driver, {"refused": f"cannot start a worker: {problem}"})
        return
    gc.freeze()  # the collectors of the processes that come of this one leave its memory shared
    gc.enable()
    mine = fork_into_lanes(len(places))
    for number, (driver, (_, lifeline)) in enumerate(zip(drivers, places, strict=True)):
        if number != mine:
            driver.close()
            os.close(lifeline)
    # Names of chapters and folders: the zygote is forked after this, and is to hold nothing of the
    # course.
    order, _ = receive_frame(drivers[mine])
    try:
        serve_driver(drivers[mine], places[mine][1], order)
    finally:
        remove_folder(order["folder"])


def fork_into_lanes(lanes: int) -> int:
    """Fork until there are ``lanes`` processes; return the number of this one, from 0."""
    for number in range(1, lanes):
        parent_of_lane = os.fork()
        if parent_of_lane == 0:
            # Forked once more, and its parent ends: so no lane has a child lane to wait for.
            if os.fork():
                os._exit(0)
            # A session of its own, as a lane has that is started alone.
            os.setsid()
            return number
        os.waitpid(parent_of_lane, 0)
    return 0


def serve_driver(driver: socket.socket, lifeline: int, order: dict[str, Any]) -> None:
    """Fork the zygote, then serve one driver as its lane until it hangs up."""
    if order["core"] is not None:
        with suppress(OSError):
            os.sched_setaffinity(0, {order["core"]})
    send_frame(driver, {"pid": os.getpid()})
    os.mkdir(order["folder"], mode=0o700)
    # Packets, not a stream: each comes whole, with the descriptors that belong to it.
    lane_end, zygote_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    zygote_pid = os.fork()
    if zygote_pid == 0:
        from attncourse.grading.judge.worker import zygote

        driver.close()
        os.close(lifeline)
        lane_end.close()
        zygote.run_zygote(zygote_end, order)
    zygote_end.close()
    ending = (lifeline, zygote_pid, order["folder"])
    threading.Thread(target=end_when_driver_ends, args=ending, daemon=True).start()
    # Only now: it brings the checks, whose answers the zygote must not have had in its memory.
    from attncourse.grading.judge.lane_loop import LaneLoop

    LaneLoop(driver, lane_end, order).serve()


def load_libraries(modules: list[str]) -> None:
    """Import what submissions need, single-threaded, and have it used a few times."""
    from attncourse.grading.judge.worker.zygote import rehearse_worker

    for name in modules:
        importlib.import_module(name)
    if any(name.split(".")[0] == "matplotlib" for name in modules):
        # Else each worker would import it, and look for fonts, when it first draws.
        importlib.import_module("matplotlib.font_manager")
    if "torch" in modules:
        import torch

        # A process that ever ran an operation in two threads makes its forks hang on their first.
        torch.set_num_threads(1)
        with suppress(RuntimeError):
            torch.set_num_interop_threads(1)
    rehearse_worker()


def end_when_driver_ends(lifeline: int, zygote: int, folder: str) -> None:
    """Wait until the driver is gone, then end the zygote with its worker, and this process.

    The zygote goes first: it may be filling the folder that is removed.
    """
    os.read(lifeline, 1)
    with suppress(OSError):
        os.kill(zygote, signal.SIGKILL)
        os.waitpid(zygote, 0)
    remove_folder(folder)
    os._exit(1)


if __name__ == "__main__":
    main()
