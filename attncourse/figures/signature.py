"""The head of a function as a listing has it: bare names, and the shapes as a comment."""

import ast
import textwrap

Function = ast.FunctionDef | ast.AsyncFunctionDef
GLUE = "\N{NO-BREAK SPACE}"  # holds together what is to stay on one line


def signature_head(code: str, node: Function, width: int) -> str:
    """Return ``def`` with names and defaults, and under it which array has which shape.

    ``code`` is the text that ``node`` comes from. The result begins at the function's own column,
    and its lines end by column ``width``.
    """
    outside, inside = " " * node.col_offset, " " * (node.col_offset + 4)
    names = [name.replace(" ", GLUE) for name in parameters(code, node.args)]
    line = f"def {node.name}({', '.join(names)}):".replace(GLUE, " ")
    if node.col_offset + len(line) > width:
        line = f"def {node.name}(\n{wrap(', '.join(names), width, inside)}\n{outside}):"
    if said := shape_line(node):
        line += "\n" + wrap(said, width, inside + "# ")
    return line


def wrap(text: str, width: int, indent: str) -> str:
    """Return the text in lines that begin with ``indent`` and break at spaces only."""
    lines = textwrap.wrap(text, width - len(indent), break_long_words=False, break_on_hyphens=False)
    return "\n".join(indent + line for line in lines).replace(GLUE, " ")


def parameters(code: str, arguments: ast.arguments) -> list[str]:
    """Return the parameters with their defaults and without annotations."""

    def named(argument: ast.arg, default: ast.expr | None) -> str:
        return argument.arg + (f"={ast.get_source_segment(code, default)}" if default else "")

    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + arguments.defaults
    names = list(map(named, plain, defaults))
    if arguments.posonlyargs:
        names.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg or arguments.kwonlyargs:
        names.append("*" + (arguments.vararg.arg if arguments.vararg else ""))
    names += map(named, arguments.kwonlyargs, arguments.kw_defaults)
    return names + ([f"**{arguments.kwarg.arg}"] if arguments.kwarg else [])


def shape_line(node: Function) -> str:
    """Return ``query (..., m, d), key (..., n, d) -> (..., m, n)``; "" where no shape is known."""
    a = node.args
    named = [*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs]
    known = [(argument.arg, shape(argument.annotation)) for argument in named]
    said = ", ".join(f"{name} {text}".replace(" ", GLUE) for name, text in known if text)
    result = shape(node.returns)
    if not result and said and isinstance(node.returns, ast.Name | ast.Attribute):
        result = ast.unparse(node.returns)  # bool, float, nx.DiGraph
    return " ".join(filter(None, [said, result and f"-> {result}".replace(" ", GLUE)]))


def shape(annotation: ast.expr | None) -> str:
    """Return the axes that an annotation names: ``(..., m, d)``, ``(..., m, d) or (d,)``.

    Else empty.
    """
    match annotation:
        case ast.BinOp(op=ast.BitOr()):
            both = shape(annotation.left), shape(annotation.right)
            return " or ".join(filter(None, both))
        case ast.Subscript(value=ast.Name("tuple"), slice=ast.Tuple(parts)):
            every = [shape(part) for part in parts]
            return ", ".join(every) if all(every) else ""
        case ast.Subscript(slice=ast.Tuple([_, ast.Constant(str(axes))])) if axes != "...":
            names = ["..." if "*" in axis else axis.lstrip("#") for axis in axes.split()]
            return f"({', '.join(names)}{',' if len(names) == 1 and names != ['...'] else ''})"
    return ""
