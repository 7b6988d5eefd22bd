"""Copies of a submission's modules in the checker, and gradients across the two processes.

A submission's module has a copy here, a real ``torch.nn.Module`` with real parameters, so that
``state_dict``, ``load_state_dict``, ``parameters``, ``to`` and an optimizer's step are torch's own
work. Before each call the changes made here go over, after it those made there come back. A call is
one node in the graph of gradients, whose backward is computed where the call was.
"""

import weakref
from typing import Any

import torch
from torch import nn

from attncourse.grading.judge.remote.session_type import ObjectSession
from attncourse.grading.judge.wire import encoding
from attncourse.grading.judge.wire.decoding import HANDLE_BYTES, IDENTIFIER, Decoder, natural_number
from attncourse.grading.judge.wire.frames import WireError
from attncourse.grading.limits import MB


class Mirrors:
    """The copies of a submission's modules."""

    def __init__(self, session: ObjectSession):
        self.session = session
        self.described: dict[int, dict[str, Any]] = {}  # modules that no copy was made of yet
        self.sizes: dict[int, float] = {}  # bytes of their descriptions
        self.alive: dict[int, Any] = {}  # weak references to the copies
        self.bases: dict[type, type] = {}

    def class_of_copy(self, names: Any) -> type:
        """Return the class of a copy: ``RemoteModule``, and torch's own class that its module is.

        ``names`` are those of the module's torch classes; the first that torch has counts, so that
        ``isinstance(copy, nn.Linear)`` is true of a linear layer's copy.
        """
        known = names if isinstance(names, list) else []
        kinds = (getattr(nn, str(name), None) for name in known)
        modules = (k for k in kinds if isinstance(k, type) and issubclass(k, nn.Module))
        known = next(modules, nn.Module)
        if known is nn.Module:
            return RemoteModule
        if known not in self.bases:
            self.bases[known] = type(known.__name__, (RemoteModule, known), {})
        return self.bases[known]

    def note_modules(self, descriptions: Any, decoder: Decoder, size: float) -> None:
        """Note modules that are new, and bring copies up to date of those that have changed.

        ``size`` are the bytes of the reply that describes them.
        """
        if not isinstance(descriptions, dict):
            raise WireError("sent no modules")
        for key, description in descriptions.items():
            number = natural_number(int(key)) if str(key).isdigit() else natural_number(None)
            before = decoder.room.left
            description = decoded_module(description, decoder)
            copy = self.copy_of(number)
            if copy is None:
                self.described[number] = description
                self.sizes[number] = max(size / len(descriptions), before - decoder.room.left)
            else:
                self.bring_up_to_date(copy, description)
        if sum(self.sizes[number] for number in self.described) > self.session.limits.message * MB:
            raise WireError("described more modules than are of use")

    def copy_of(self, number: int) -> Any:
        """Return the copy of a module by its handle, None where there is none."""
        reference = self.alive.get(number)
        return reference() if reference is not None else None

    def get_or_make_copy(self, number: int) -> "RemoteModule":
        """Return the copy of a module by its handle, made from its description if there is none."""
        copy = self.copy_of(number)
        if copy is not None:
            return copy
        description = self.described.pop(number, None)
        if description is None:
            raise WireError("sent a module that it did not describe")
        base = self.class_of_copy(description["bases"])
        # Torch's class wants the arguments that the submission made its module with: only what
        # every module has is set up.
        copy: Any = object.__new__(base)
        nn.Module.__init__(copy)
        # Past ``__setattr__``, which looks up this very entry.
        copy.__dict__["_attncourse"] = (self.session, number)
        self.alive[number] = weakref.ref(copy)
        self.session.forget_with(copy, number)
        self.bring_up_to_date(copy, description)
        return copy

    def bring_up_to_date(self, copy: "RemoteModule", description: dict[str, Any]) -> None:
        """Give a copy the plain attributes, parameters, buffers and children of its module."""
        for name, value in description["plain"].items():
            if IDENTIFIER.fullmatch(name) and name[0] != "_" and not hasattr(nn.Module, name):
                copy.__dict__[name] = value
        shared = dict(copy.__dict__.get("_attncourse_ids", {}))
        ids: dict[int, nn.Parameter] = {}
        copy._parameters.clear()
        copy._buffers.clear()
        for name, (number, value) in description["tensors"].items():
            if not isinstance(value, nn.Parameter):
                copy._buffers[name] = value
                continue
            # The same parameter stays the same object: an optimizer of the test's may hold it.
            known = shared.get(number, self.shared_parameter(number))
            if known is not None and known.shape == value.shape and known.dtype == value.dtype:
                if encoding.tensor_content(known)[3] != encoding.tensor_content(value)[3]:
                    known.data = value.data
                known.requires_grad_(value.requires_grad)
                value = known
            ids[number] = copy._parameters[name] = value
        copy.__dict__["_attncourse_ids"] = ids
        copy._non_persistent_buffers_set = set(description["transient"])
        children = {
            n: self.get_or_make_copy(natural_number(t.get("h")))
            for n, t in description["children"].items()
        }
        copy._modules.clear()
        copy._modules.update(children)
        if description["plain"].get("training") in (True, False):
            copy.training = description["plain"]["training"]
        copy.__dict__["_attncourse_sent"] = encoding.module_fingerprint(copy)

    def shared_parameter(self, number: int) -> Any:
        """Return the parameter of this number that another copy holds; None where none does."""
        for reference in self.alive.values():
            copy = reference()
            if copy is not None and number in copy.__dict__.get("_attncourse_ids", {}):
                return copy.__dict__["_attncourse_ids"][number]
        return None

    def sent_with_call(self, encoder: encoding.Encoder, leaves: tuple) -> dict[str, Any]:
        """Return the part of a call's request that is about gradients and modules; note it as sent.

        ``grad`` says whether gradients are on. ``inner`` are the numbers of those tensors among the
        arguments that were computed. ``state`` has the changed copies, ``leaves`` the parameters
        (their module's number and their name) that gradients are asked for.
        """
        # The worker clones these: there they are leaves, which may not be changed in place.
        inner = [n for n, t in enumerate(encoder.tracked, start=1) if t.grad_fn is not None]
        state = {}
        # All copies, not the called one alone: a test may have changed one that its module calls.
        for number, reference in list(self.alive.items()):
            copy = reference()
            if copy is None:
                del self.alive[number]
                continue
            now = encoding.module_fingerprint(copy)
            if now != copy.__dict__["_attncourse_sent"]:
                state[str(number)] = state_changes(copy, now, encoder)
                copy.__dict__["_attncourse_sent"] = now
        sent = [[number, name] for number, name, _ in leaves]
        return {"grad": torch.is_grad_enabled(), "inner": inner, "state": state, "leaves": sent}

    def connect_gradients(self, value: Any, decoder: Decoder, graph: Any, inputs: list) -> Any:
        """Return a call's value with its tensors in the graph of gradients.

        They are outputs of one node, whose inputs are the call's tensors, ``inputs``; ``graph`` is
        the number by which the process knows the call.
        """
        number = natural_number(graph)
        order = sorted(decoder.tracked)
        node = Call(self.session, number)
        self.session.forget_with(node, number)
        if not inputs or not torch.is_grad_enabled():
            return value
        outputs = [decoder.tracked[n].detach() for n in order]
        joined = RemoteCall.apply(node, outputs, *inputs)
        joined_by_id = dict(zip((id(decoder.tracked[n]) for n in order), joined))  # noqa: B905
        return with_tensors_replaced(value, joined_by_id)


class Call:
    """A call in the submission's process, which keeps its graph: gradients can be asked for."""

    def __init__(self, session: ObjectSession, number: int):
        self.session = session
        self.number = number

    def backward(self, gradients: list[Any]) -> list[Any]:
        """Return the gradients of the call's inputs for these of its outputs.

        A gradient is None, either way, for a value that nothing depends on.
        """
        encoder = encoding.Encoder(self.session.reference_to)
        request = {"op": "backward", "graph": self.number, "gradients": encoder.encode(gradients)}
        reply, decoder = self.session.ask(request, encoder.buffers, self.session.limits.call)
        decoded = decoder.decode(reply.get("gradients"))
        if not isinstance(decoded, list):
            raise WireError("sent no gradients")
        return decoded


class RemoteCall(torch.autograd.Function):
    """The node in torch's graph of gradients that stands for a call in the other process."""

    @staticmethod
    def forward(ctx: Any, node: Call, outputs: list, *inputs: Any) -> tuple:
        """Return the outputs of the call as they came; note shapes and dtypes of its inputs."""
        ctx.node = node
        ctx.shapes = [(t.shape, t.dtype) for t in inputs]
        # An output that nothing depends on has None, and no zeros are sent for it.
        ctx.set_materialize_grads(False)
        return tuple(outputs)

    @staticmethod
    @torch.autograd.function.once_differentiable
    # pyrefly: ignore [bad-override]  the decorator hides what is decorated
    def backward(ctx: Any, *gradients: Any) -> tuple:
        """Return the gradients of the call's inputs, asked of the process, if their shapes fit."""
        gradients_back = ctx.node.backward(list(gradients))
        if [
            g is None or (g.shape, g.dtype) == s
            for g, s in zip(gradients_back, ctx.shapes, strict=False)
        ] != [True] * len(ctx.shapes):
            raise WireError("sent gradients of other shapes than what went in")
        return (None, None, *gradients_back)


class RemoteModule(nn.Module):
    """The copy of a submission's module. Calling it calls the module in its process."""

    def attncourse_handle(self) -> int:
        """Return the number by which its process knows the module."""
        return self.__dict__["_attncourse"][1]

    def forward(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the module in its process."""
        return self._attncourse_use("call", self, args, kwargs)

    def _attncourse_use(self, operation: str, target: Any, args: tuple, kwargs: dict) -> Any:
        """Use ``target`` in the module's process, with gradients for the module's parameters."""
        session = self.__dict__["_attncourse"][0]
        return session.use_with(operation, (target, *args), kwargs, leaves_of(self))

    def __getattr__(self, name: str) -> Any:
        """Return what torch has under that name, else the module's attribute in its process."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("_"):
                raise
        attribute = self.__dict__["_attncourse"][0].use("getattr", self, name)
        return (
            Method(self, attribute) if hasattr(type(attribute), "attncourse_handle") else attribute
        )

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a plain attribute in the module's process, and anything else here."""
        is_local = name.startswith("_") or name == "training"
        if isinstance(value, bool | int | float | str | None) and not is_local:
            self.__dict__["_attncourse"][0].use("setattr", self, name, value)
            if name in self.__dict__:  # one that the copy holds, too
                self.__dict__[name] = value
            return
        super().__setattr__(name, value)

    def __bool__(self) -> bool:
        """Raise ``TypeError``: a test that asks for it has mistaken a module for a value."""
        raise TypeError(f"got a {type(self).__name__}, which is no truth value")

    def __deepcopy__(self, memo: dict[int, Any]) -> "RemoteModule":
        """Return the copy of a new module, which its process makes as a deep copy of this one's."""
        return self.__dict__["_attncourse"][0].use("copy", self)

    def __repr__(self) -> str:
        """Return the class's name, and nothing that the submission made."""
        return f"<{type(self).__name__}>"


class Method:
    """The proxy of a module's method: a call of it has gradients for the module's parameters."""

    def __init__(self, owner: RemoteModule, function: Any):
        self._owner = owner
        self._function = function

    def attncourse_handle(self) -> int:
        """Return the number by which its process knows the method."""
        return self._function.attncourse_handle()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method in its process."""
        return self._owner._attncourse_use("call", self._function, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the method; private ones raise ``AttributeError``."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._function, name)


def leaves_of(module: nn.Module) -> tuple:
    """Return the parameters that gradients of a call may be for, in a module and those below it.

    Each is a triple of its module's handle, its name and itself.
    """
    parameters = []
    for part in module.modules():
        number = part.__dict__.get("_attncourse", (None, None))[1]
        if number is not None:
            parameters += [(number, n, p) for n, p in part._parameters.items() if p is not None]
    return tuple(item for item in parameters if item[2].requires_grad)


def state_changes(
    module: nn.Module, now: dict[str, Any], encoder: encoding.Encoder
) -> dict[str, Any]:
    """Return the part of a copy's state that the submission's process does not have yet.

    ``now`` is the present fingerprint of the copy.
    """
    before = module.__dict__["_attncourse_sent"]
    tensors = {}
    for name, tensor in encoding.tensors_of(module).items():
        if now[name] != before.get(name):
            new = before.get(name, (None,))[0] != id(tensor)
            tensors[name] = encoding.describe_tensor(module, name, encoder) | {"new": new}
    return {"training": module.training, "tensors": tensors}


def decoded_module(description: Any, decoder: Decoder) -> dict[str, Any]:
    """Return a module's description with its tensors decoded; raise ``WireError`` if it is none."""
    try:
        tensors = {
            checked_name(name): (natural_number(t["id"]), tensor_of(t, decoder))
            for name, t in description["tensors"].items()
        }
        plain = decoder.decode(description["plain"])
        children = {checked_name(n): dict(child) for n, child in description["children"].items()}
        decoder.room.take(HANDLE_BYTES * (1 + len(children)))
        transient = [checked_name(name) for name in description["transient"]]
        return {
            "tensors": tensors,
            "plain": dict(plain),
            "children": children,
            "bases": description["bases"],
            "transient": transient,
        }
    except (TypeError, KeyError, AttributeError, ValueError, RuntimeError):
        raise WireError("sent no module") from None


def tensor_of(form: dict[str, Any], decoder: Decoder) -> torch.Tensor:
    """Return a module's parameter, or its buffer, from the form in which it was sent."""
    value = decoder.decode(form["value"])
    if not isinstance(value, torch.Tensor):
        raise WireError("sent no tensor")
    if form["parameter"] is not True:
        return value.detach()
    return nn.Parameter(value.detach(), form["grad"] is True)


def checked_name(name: Any) -> str:
    """Return the name of a parameter or child; raise ``WireError`` if no such name is possible.

    ``nn.Sequential`` numbers its children.
    """
    if not isinstance(name, str) or not (IDENTIFIER.fullmatch(name) or name.isdigit()):
        raise WireError("sent a name that is none")
    return name


def with_tensors_replaced(value: Any, by: dict[int, Any]) -> Any:
    """Return a value whose tensors are replaced by those that ``by`` has for their ids."""
    if id(value) in by:
        return by[id(value)]
    if type(value) in (list, tuple):
        return type(value)(with_tensors_replaced(item, by) for item in value)
    if isinstance(value, tuple):  # with named fields
        return type(value)(*(with_tensors_replaced(item, by) for item in value))
    if type(value) is dict:
        return {key: with_tensors_replaced(item, by) for key, item in value.items()}
    return value
