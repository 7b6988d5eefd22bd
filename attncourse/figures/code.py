"""The package's own code, for a page to show."""

import ast
import inspect
import textwrap
from collections.abc import Callable


def source(thing: Callable) -> str:
    """The source of a function or class of the package, without its docstrings."""
    code = textwrap.dedent(inspect.getsource(thing))
    lines = code.splitlines()
    documented = (ast.FunctionDef, ast.ClassDef)
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            text = node.body[0]
            for number in range(text.lineno - 1, text.end_lineno):
                lines[number] = None
            after = text.end_lineno
            if after < len(lines) and lines[after] is not None and not lines[after].strip():
                lines[after] = None
    return "\n".join(line for line in lines if line is not None)


def show_source(*things: Callable):
    """The package's own code for a page to show, so that text and code cannot drift apart."""
    from IPython.display import Markdown

    code = "\n\n\n".join(source(thing) for thing in things)
    return Markdown(f"```python\n{code}\n```")
