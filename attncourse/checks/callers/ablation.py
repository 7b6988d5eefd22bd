"""Language models: the one that an implementation is given is built here, out of data.

A model of the checker's own, called across the processes, would have no layers to change.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from attncourse.checks.callers.modules import set_parameter, type_of_modules
from attncourse.checks.trying.outcome import Unusable

NAME_OF_RESULT = "what is returned"
COPY, MODEL = "the logits of the copy", "the logits of the model that you were given, afterwards"
NAME_OF_HOOKS_KEPT = "the blocks have the hooks that they had before"


def call_on_gpt(implementation: Callable, config: dict, args, **tensors) -> Any:
    """Return what the implementation makes of a ``GPT`` of these tensors and the arguments."""
    return implementation(gpt_of(config, tensors), *args)


def call_on_llama(
    implementation: Callable, config: dict, args, afterwards: bool = False, **tensors
) -> Any:
    """Return what the implementation makes of a ``Llama`` of these tensors and the arguments.

    afterwards: each block has a hook of somebody else's, which does nothing, and told are also what
    the model says of other ids then, and whether its hooks are those that it had.
    """
    import torch

    model = llama_of(config, tensors)
    if not afterwards:
        return implementation(model, *args)
    for block in model.blocks:
        block.register_forward_hook(lambda block, args_in, x: None)
    before = hooks_of(model)
    result = implementation(model, *args)
    same = hooks_of(model) == before
    with torch.no_grad():
        return {NAME_OF_RESULT: result, MODEL: model(args[1]), NAME_OF_HOOKS_KEPT: same}


def hooks_of(model: Any) -> list[dict]:
    """Return the hooks of every part of the model, before and after it runs."""
    parts = list(model.modules())
    return [
        dict(hooks) for part in parts for hooks in (part._forward_hooks, part._forward_pre_hooks)
    ]


def logits_of_changed(
    implementation: Callable, config: dict, calls, ids, **tensors
) -> dict[str, Any]:
    """Return the outputs of changed copies of a ``GPT`` for ids, then the model's own output.

    One copy is made by each call, with the model and its arguments; all are made before any is
    used. How a copy comes to say something else is its own affair.
    """
    import torch

    model = gpt_of(config, tensors)
    copies = [implementation(model, *args) for args in calls]
    for changed in copies:
        if not isinstance(changed, type_of_modules()):
            raise Unusable(f"returned {type(changed).__name__}, which is not a torch.nn.Module")
    names = [COPY] if len(copies) == 1 else [f"{COPY} of call {i + 1}" for i in range(len(copies))]
    with torch.no_grad():
        logits = {name: changed(ids) for name, changed in zip(names, copies, strict=True)}
        return logits | {MODEL: model(ids)}


def gpt_of(config: dict, tensors: dict[str, Any]) -> Any:
    """Return a ``GPT`` in ``eval()`` whose parameters are the tensors themselves, in their dtype.

    Where its first and its last layer are tied, no tensor is given for the last one.
    """
    from attncourse.gpt import GPT, GPTConfig

    return model_of(GPT, GPTConfig(**config), tensors)


def llama_of(config: dict, tensors: dict[str, Any]) -> Any:
    """Return a ``Llama`` in ``eval()`` whose parameters are the tensors themselves."""
    from attncourse.llama import Llama, LlamaConfig

    return model_of(Llama, LlamaConfig(**config), tensors)


def model_of(kind: type, config: Any, tensors: dict[str, Any]) -> Any:
    """Return a model of this kind: a twin of one that is kept, in a sixth of the time."""
    model = twin_of_module(first_of(kind, config))
    for name, value in tensors.items():
        set_parameter(model, name, value)
    if config.tied:
        model.out.weight = model.tokens.weight
    return model


@lru_cache(maxsize=32)
def first_of(kind: type, config: Any) -> Any:
    """Return a model of this kind in ``eval()``, which nobody changes."""
    import torch

    with torch.random.fork_rng(devices=[]):
        return kind(config).eval()


def shapes_of(kind: type, config: Any) -> dict[str, Any]:
    """Return the shapes of a model's parameters, by name."""
    return {name: p.shape for name, p in first_of(kind, config).named_parameters()}


def twin_of_module(module: Any) -> Any:
    """Return a module like another of ours, with twins of those in it: with the same tensors.

    ``copy.deepcopy`` takes longer than to make another.
    """
    kind: Any = type(module)
    other = kind.__new__(kind)
    for name, value in vars(module).items():
        vars(other)[name] = value.copy() if isinstance(value, dict | set) else value
    for name, inner in other._modules.items():
        other._modules[name] = twin_of_module(inner)
    return other
