"""What could hide from the judge what is called, by the names that give it away."""

import re
import unicodedata

from attncourse.grading.submission.syntax import LONGEST

GETS = {"getattr", "hasattr", "setattr", "delattr", "attrgetter"}

SAFE = {"weights_only": True, "allow_pickle": False}  # what keeps a loader from running code


def by_name(table: dict[str, str]) -> dict[str, str]:
    """The table turned over: what is said of each of its names."""
    return {name: why for why, names in table.items() for name in names.split()}


PRIVATE = "private parts of torch"
MADE_UP = "parts of torch by made-up names"
REPLACED = "parts of a library replaced"
# Whatever the assignment: what looks beyond the student's own functions.
INTERPRETER = by_name(
    {
        "memory itself": "ctypes cffi",
        "objects of others": "gc.get_",
        "frames of others": "sys._getframe sys._current_frames inspect.currentframe inspect.stack "
        "inspect.trace inspect.getouterframes inspect.getinnerframes traceback.walk_stack "
        "traceback.walk_tb",
        "what others run": "sys.settrace sys.setprofile sys.monitoring sys.addaudithook",
    }
)
# Where an exercise forbids a function: what could call it unseen, or have it at hand.
WATCH = by_name(
    {
        "operators below torch's functions": "torch.ops",
        "what torch tells of its calls": "torch.overrides",
        "torch's table of operators": "torch.library",
        "code that is compiled": "torch.jit torch.compile torch.compiler",
        "code that is traced": "torch.fx torch.export",
        "code from a file": "torch.package torch.hub .py runpy zipimport importlib.machinery "
        "importlib.util.spec_from_file_location importlib.util.module_from_spec",
        "code from bytes": "pickle marshal dill cloudpickle shelve",
        "code from text": "eval exec compile __builtins__ builtins.__dict__ codeop bdb "
        "code.InteractiveInterpreter code.InteractiveConsole code.interact code.compile_command "
        "cProfile.run cProfile.runctx profile.run profile.runctx pdb.run pdb.runeval pdb.runcall",
        "modules by made-up names": "__import__ importlib.import_module()",
        "modules of others": "sys.modules. sys.meta_path",
        "the checks themselves": "attncourse.checks.watch attncourse.checks.outcome",
        "work outside of the call": "torch.multiprocessing threading _thread concurrent "
        "multiprocessing asyncio subprocess atexit weakref.finalize joblib dask distributed",
        "what counts the memory": "tracemalloc mmap",
        "functions put in place of others": "unittest.mock",
        "finished attention": "torch.nn.attention torch.ao torch.onnx transformers flash_attn "
        "xformers jax flax keras tensorflow mlx",
    }
)
# Names that give themselves away on whatever object they stand.
ATTRIBUTES = by_name(
    {
        "objects of others": "__globals__ __closure__ __subclasses__",
        "functions of others": "__code__",
        "frames of others": "f_back f_globals f_locals tb_frame gi_frame cr_frame ag_frame",
        PRIVATE: "_C",
        "what torch tells of its calls": "__torch_function__ __torch_dispatch__",
    }
)
WATCHED_ATTRIBUTES = by_name(
    {
        "operators below torch's functions": "aten",
        "what torch tells of its calls": "handle_torch_function wrap_torch_function "
        "TorchFunctionMode TorchDispatchMode",
        "a watch put out": "DisableTorchFunction DisableTorchFunctionSubclass",
    }
)
# A word of each kind of what is in the tables: where none is, there is nothing to look for.
TABLES = [prefix.rstrip(".()").split(".") for prefix in INTERPRETER | WATCH]
WORDS = {parts[0] if parts[0] == "inspect" else parts[-1] for parts in TABLES}
WORDS |= {*ATTRIBUTES, *WATCHED_ATTRIBUTES, *GETS, "vars", "__dict__", "modules", "import_module"}
WORDS |= {"__setattr__", "__delattr__", *SAFE}
ESCAPE = r"\\(?:[xuUN0-7]|[abfnrtv](?=\w))"  # in a text, where a word may begin or hide
TELLTALE = re.compile(rf"\b(?:{'|'.join(sorted(WORDS))}|get_\w+|_(?!_)\w+)\b|{ESCAPE}")
# An attribute of anything but self that may be given a value: by =, in a tuple, by for or by as.
GIVEN = re.compile(
    r"(?<!\bself)\.[\s\\]*+\w++[\s\\)]*+(?:[-+*/@&|^%]{0,2}(?:<<|>>)?=(?!=)|[:,]|in\b)"
)


def suspect(source: str) -> bool:
    """Whether a text holds any word that may matter, so that it is worth a closer look."""
    text = source if source.isascii() else unicodedata.normalize("NFKC", source)
    return len(source) > LONGEST or TELLTALE.search(text) is not None


def gives(source: str) -> bool:
    """Whether a text may give an attribute of something another value."""
    return GIVEN.search(source) is not None
