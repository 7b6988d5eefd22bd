"""How soon a page can be used on a slow machine, of one built site or of two side by side.

    python benchmarks/interactive.py                      the site in _build/html
    python benchmarks/interactive.py OLD/_build/html      and an older one, turn by turn

Chromium runs at a sixth of this machine's speed. A page can be used once no task of its own keeps
the thread for 50 ms or longer any more, a second of quiet after it. Times are medians of five.
"""

import sys
import threading
from functools import partial
from pathlib import Path
from statistics import median

from attncourse.grading.serve import Quiet, Server

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from chromium import ABSENT, BROWSER, launched  # noqa: E402

PAGES = ("book/index", "book/05_kqv", "book/14_interpret", "book/18_llama")
SLOWER, REPEATS = 6, 5
QUIET = 1.0  # seconds without a long task
WATCH = """
window.longTasks = [];
new PerformanceObserver(list => window.longTasks.push(
  ...list.getEntries().map(task => [task.startTime, task.duration])
)).observe({type: "longtask", buffered: true});
"""
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def measure(browser, address: str) -> tuple[float, float, float]:
    """Return a page's first paint, when it can be used, and its longest task, in seconds."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.add_init_script(WATCH)
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    page.goto(address, wait_until="load")
    while True:
        tasks = page.evaluate("window.longTasks")
        ended = max([sum(task) for task in tasks], default=0)
        if page.evaluate("performance.now()") - ended > 1000 * QUIET:
            break
        page.wait_for_timeout(200)
    painted = page.evaluate(PAINTED)
    page.close()
    longest = max([duration for _, duration in tasks], default=0)
    return painted / 1000, max(ended, painted) / 1000, longest / 1000


def main() -> None:
    """Print the table."""
    sites = [*map(Path, sys.argv[1:]), ROOT / "_build" / "html"]
    if missing := [str(site) for site in sites if not (site / f"{PAGES[0]}.html").is_file()]:
        raise SystemExit(f"no book is built in {', '.join(missing)}: make book")
    if BROWSER is None:
        raise SystemExit(ABSENT)
    servers = [Server(("127.0.0.1", 0), partial(Quiet, directory=str(site))) for site in sites]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print("| page | site | first paint | can be used | longest task |")
    print("| --- | --- | --: | --: | --: |")
    with launched() as browser:
        for name in PAGES:
            seen = [[] for _ in sites]
            for _ in range(REPEATS):
                for server, rows in zip(servers, seen, strict=True):
                    address = f"http://127.0.0.1:{server.server_port}/{name}.html"
                    rows.append(measure(browser, address))
            for site, rows in zip(sites, seen, strict=True):
                times = " | ".join(f"{median(column):.2f} s" for column in zip(*rows, strict=True))
                print(f"| {name} | {'this' if site == sites[-1] else site} | {times} |")
    for server in servers:
        server.shutdown()


if __name__ == "__main__":
    main()
