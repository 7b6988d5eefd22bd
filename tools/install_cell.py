"""The cell that every notebook begins with: it brings the package that the notebook was made for.

Of a released version that is the wheel that was published with it: about a megabyte, installed in
seconds, and no git is needed. One that ends in `.dev` has none, and is built from the branch. A
newer package than the notebook's stays. Where a chapter reads the real model, the libraries that it
takes come with the package. What goes wrong is said in one sentence.
"""

from __future__ import annotations

REAL = ("llama", "circuits", "serving")  # chapters whose notebooks read the real model
LIBRARIES = ("gguf", "tokenizers", "regex", "filelock")  # the extra [model] of pyproject.toml

CELL = """\
#@title Install the course's package, where it is missing or old
def _install(version, source):
    import re, subprocess, sys

    def number(text):
        return [int(part) for part in re.findall(r"\\d+", text)]

    try:
        from attncourse import __version__ as found
    except ImportError:
        found = ""
    if number(found) >= number(version):
        return
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--upgrade",
         f"attncourse @ {source}"],
        capture_output=True, text=True,
    )
    for name in [n for n in sys.modules if n.split(".")[0] == "attncourse"]:
        del sys.modules[name]  # what was imported of an old version
    if done.returncode == 0:
        return
    if re.search("resolve|connect to|new connection|timed out", done.stderr):
        why = "there is no network. Connect, and run this cell again"
    elif re.search(r"did not match|\\b404\\b", done.stderr):
        why = f"{source} does not exist. Open the course's newest notebook"
    else:
        said = re.findall(r"(?:fatal|ERROR): (.*)", done.stderr)
        why = said[0] if said else f"pip ended with status {done.returncode}"

    class NotInstalled(Exception):
        def _render_traceback_(self):
            return [str(self)]

    raise NotInstalled(f"attncourse {version} was not installed: {why}.")


_install("VERSION", "SOURCE")"""
WITH_LIBRARIES = {
    "import re,": "import importlib.util, re,",
    "number(version):": "number(version) and all(map(importlib.util.find_spec,\n"
    f"        {LIBRARIES})):",
    "attncourse @": "attncourse[model] @",
}


def install_cell(url: str, branch: str, version: str, stem: str = "") -> str:
    """The cell's source, for a chapter's notebook by its stem."""
    wheel = f"{url}/releases/download/v{version}/attncourse-{version}-py3-none-any.whl"
    source, cell = f"git+{url}@{branch}" if ".dev" in version else wheel, CELL
    for without, with_them in WITH_LIBRARIES.items() if stem in REAL else ():
        cell = cell.replace(without, with_them)
    return cell.replace("VERSION", version).replace("SOURCE", source)
