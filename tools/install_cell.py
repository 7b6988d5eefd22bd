"""The cell that every notebook begins with: it brings the package that the notebook was made for.

Of a released version that is the wheel that was published with it: about a megabyte, installed in
seconds, and no git is needed. One that ends in `.dev` has none, and is built from the branch. A
newer package than the notebook's stays. Where a chapter reads the real model, the libraries that it
takes come with the package. What goes wrong is said in one sentence, with what to do about it.
"""

from __future__ import annotations

WITHOUT_TORCH = ("tokens", "mixing", "lookup", "self_attention")  # chapters that take NumPy alone
REAL = ("llama", "circuits", "serving")  # chapters whose notebooks read the real model
LIBRARIES = ("gguf", "tokenizers", "regex", "filelock")  # the extra [model] of pyproject.toml

CELL = """\
#@title Install the course's package, where it is missing or old
def _install(version, source, needs):
    import importlib.util, platform, re, subprocess, sys

    class NotInstalled(Exception):
        def _render_traceback_(self):
            return [str(self)]

    def number(text):
        return [int(part) for part in re.findall(r"\\d+", text)]

    try:
        from attncourse import __version__ as found
    except ImportError:
        found = ""
    if number(found) >= number(version) and all(map(importlib.util.find_spec, needs)):
        return
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--upgrade", "--timeout=10", "--retries=1",
         f"PACKAGE @ {source}"],
        capture_output=True, text=True, errors="replace",
    )
    for name in [n for n in sys.modules if n.split(".")[0] == "attncourse"]:
        del sys.modules[name]  # what was imported of an old version
    said, colab = done.stderr, "open this notebook in Colab, or use another Python"
    if done.returncode == 0:
        importlib.invalidate_caches()
        if "torch" not in needs or importlib.util.find_spec("torch"):
            return
        said = "distribution found for torch"
    here = f"{platform.system()} on {platform.machine()} with Python {platform.python_version()}"
    for sign, why in {
        "No module named pip": "this Python has no pip. In a terminal, uv pip install --python "
        f"'{sys.executable}' 'PACKAGE @ {source}' does it; then run this cell again",
        "externally-managed": "this Python is the system's own, and nobody may install into it. "
        "Make a virtual environment, install jupyter there, and open this notebook with it",
        "resolve|connect to|new connection|timed out": "there is no network, or what the package "
        "comes from does not answer. Connect, and run this cell again",
        "distribution found for torch": f"there is no PyTorch for {here}: {colab}",
        r"did not match|\\b404\\b": f"{source} does not exist. Open the course's newest notebook",
    }.items():
        if re.search(sign, said):
            break
    else:
        last = re.findall(r"(?i)\\b(?:fatal|error): (.*)", said)
        why = last[0] if last else f"pip ended with status {done.returncode}"
    raise NotInstalled(f"attncourse {version} was not installed: {why}.")


_install("VERSION", "SOURCE", NEEDS)"""


def install_cell(url: str, branch: str, version: str, stem: str = "") -> str:
    """Return the cell's source, for a chapter's notebook by its stem."""
    wheel = f"{url}/releases/download/v{version}/attncourse-{version}-py3-none-any.whl"
    source = f"git+{url}@{branch}" if ".dev" in version else wheel
    package = "attncourse[model]" if stem in REAL else "attncourse"
    needs = () if stem in ("", *WITHOUT_TORCH) else ("torch",)
    if stem in REAL:
        needs += LIBRARIES
    places = {"PACKAGE": package, "VERSION": version, "SOURCE": source, "NEEDS": repr(list(needs))}
    cell = CELL
    for place, text in places.items():
        cell = cell.replace(place, text)
    return cell
