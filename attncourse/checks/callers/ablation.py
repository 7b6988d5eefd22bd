"""Language models: the model that an implementation is handed is built here, out of data.

A model that stayed in the checker's process, called from here, would have no layers to change.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from attncourse.checks.callers.modules import set_parameter, type_of_modules
from attncourse.checks.trying.outcome import Unusable

NAME_OF_RESULT = "what is returned"
NAME_OF_COPY, NAME_OF_MODEL = (
    "the logits of the copy",
    "the logits of the model that you were given, afterwards",
)
NAME_OF_HOOKS_KEPT = "the blocks have the hooks that they had before"


def call_on_gpt(implementation: Callable, config: dict, args, **tensors) -> Any:
    """Return the implementation's result for a ``GPT`` of these tensors and further arguments."""
    return implementation(gpt_of(config, tensors), *args)


def call_on_llama(
    implementation: Callable, config: dict, args, afterwards: bool = False, **tensors
) -> Any:
    """Return what the implementation returns for a ``Llama`` of these tensors, then ``args``.

    With ``afterwards``, see what it left behind: each block is given a hook first, one that does
    nothing; the result comes in a dict, with the model's logits for the ids ``args[1]`` after the
    call, and whether the hooks are those that were there.
    """
    import torch

    model = llama_of(config, tensors)
    if not afterwards:
        return implementation(model, *args)
    for block in model.blocks:
        block.register_forward_hook(lambda block, args_in, x: None)
    hooks = hooks_of(model)
    result = implementation(model, *args)
    has_same_hooks = hooks_of(model) == hooks
    with torch.no_grad():
        return {
            NAME_OF_RESULT: result,
            NAME_OF_MODEL: model(args[1]),
            NAME_OF_HOOKS_KEPT: has_same_hooks,
        }


def hooks_of(model: Any) -> list[dict]:
    """Return the hooks that every part of the model runs after and before its own call."""
    parts = list(model.modules())
    return [
        dict(hooks) for part in parts for hooks in (part._forward_hooks, part._forward_pre_hooks)
    ]


def logits_of_changed(
    implementation: Callable, config: dict, calls, ids, **tensors
) -> dict[str, Any]:
    """Return the logits of changed copies of a ``GPT`` for ids, and then the model's own, by name.

    Each of ``calls`` holds the arguments with which the implementation makes one copy. All are made
    before any is used, so that one that changes the model or another copy is seen.
    """
    import torch

    model = gpt_of(config, tensors)
    copies = [implementation(model, *args) for args in calls]
    for changed in copies:
        if not isinstance(changed, type_of_modules()):
            raise Unusable(f"returned {type(changed).__name__}, which is not a torch.nn.Module")
    names = (
        [NAME_OF_COPY]
        if len(copies) == 1
        else [f"{NAME_OF_COPY} of call {i + 1}" for i in range(len(copies))]
    )
    with torch.no_grad():
        logits = {name: changed(ids) for name, changed in zip(names, copies, strict=True)}
        return logits | {NAME_OF_MODEL: model(ids)}


def gpt_of(config: dict, tensors: dict[str, Any]) -> Any:
    """Return a ``GPT`` in ``eval()`` whose parameters are the tensors themselves, in their dtype.

    With ``tied`` in the config the last layer uses the first one's tensor and needs none.
    """
    from attncourse.gpt import GPT, GPTConfig

    return model_from_prototype(GPT, GPTConfig(**config), tensors)


def llama_of(config: dict, tensors: dict[str, Any]) -> Any:
    """Return a ``Llama`` in ``eval()`` whose parameters are the tensors themselves."""
    from attncourse.llama import Llama, LlamaConfig

    return model_from_prototype(Llama, LlamaConfig(**config), tensors)


def model_from_prototype(kind: type, config: Any, tensors: dict[str, Any]) -> Any:
    """Return a model of these parameters, a copy of one kept: six times as fast as a new one."""
    model = copy_module(prototype_model(kind, config))
    for name, value in tensors.items():
        set_parameter(model, name, value)
    if config.tied:
        model.out.weight = model.tokens.weight
    return model


@lru_cache(maxsize=32)
def prototype_model(kind: type, config: Any) -> Any:
    """Return the model of this kind in ``eval()`` that others are copied from; do not change it."""
    import torch

    with torch.random.fork_rng(devices=[]):
        return kind(config).eval()


def shapes_of(kind: type, config: Any) -> dict[str, Any]:
    """Return the shapes of the parameters of a model of this kind, by name."""
    return {name: p.shape for name, p in prototype_model(kind, config).named_parameters()}


def copy_module(module: Any) -> Any:
    """Return a copy of a module of ours and of the modules in it; the tensors are the same ones.

    ``copy.deepcopy``, which copies the tensors, takes longer than to build a new module.
    """
    kind: Any = type(module)
    copied_module = kind.__new__(kind)
    for name, value in vars(module).items():
        vars(copied_module)[name] = value.copy() if isinstance(value, dict | set) else value
    for name, inner in copied_module._modules.items():
        copied_module._modules[name] = copy_module(inner)
    return copied_module
