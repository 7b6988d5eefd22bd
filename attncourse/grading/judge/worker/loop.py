"""The process in which a submission's code runs. It computes; it judges nothing.

It answers the checker's requests over one socket: run this cell, what do these names mean, call
this function with these arguments, take this gradient. It knows no tests, no checks and no
answers, and whatever it says is taken for numbers and text.
"""

import builtins
import json
import os
import signal
import sys
import time
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from functools import partial
from itertools import repeat
from typing import Any

from attncourse.checks.callers import CALLERS
from attncourse.checks.exercise import Case
from attncourse.checks.trying.outcome import TrialSettings, quiet, run_case
from attncourse.checks.trying.watch import Forbidden, forbidding
from attncourse.grading.judge.wire.decoding import Decoder
from attncourse.grading.judge.wire.encoding import Encoder, Unsendable, module_fingerprint
from attncourse.grading.judge.wire.frames import receive_frame, send_frame
from attncourse.grading.judge.worker import calls, notebook_shell
from attncourse.support.alarm import alarm_ready, within

BATCH_SECONDS = 0.02  # within which the outcomes of cases are sent together
MAX_SKIPPED_LINES = 5  # of a cell that failed, which the checker hears of
NO_OBJECT = object()
NOT_DESCRIBED: dict[str, tuple] = {"": ()}  # in place of a module's state


class Gone(BaseException):
    """The checker has hung up."""


def serve_requests(connection: Any, output: float) -> None:
    """Answer the checker's requests, and end this process when it hangs up.

    ``output`` is the MB that the submission may print.
    """
    worker = Worker(connection, int(output * 1e6), notebook_shell.notebook_namespace())
    try:
        while True:
            worker.answer_request(*receive_frame(connection))
            connection.setblocking(True)  # a submission that finds it may have it not wait
    except EOFError:
        os._exit(0)


class Worker:
    """A submission's names, the objects that the checker has handles of, and requests on them."""

    def __init__(self, connection: Any, output: int, namespace: dict[str, Any]):
        self.connection = connection
        self.printed = notebook_shell.Printed(output)
        self.handles: dict[int, Any] = {}
        self.handle_by_id: dict[int, int] = {}  # id of an object to its handle
        self.modules: dict[int, dict[str, tuple]] = {}  # as the checker last saw them
        self.graphs: dict[int, tuple[list, list]] = {}
        self.forbids: dict[str, tuple[str, ...]] = {}  # by the name of what may not use them
        # By an object's handle, what it may not call; its results inherit that.
        self.forbids_by_handle: dict[int, tuple[str, ...]] = {}
        self.forbids_of_request: tuple[str, ...] = ()  # by the handles that this request makes
        self.count = 0
        self.request_id = ""  # the name of the present request
        self.ready: list[dict[str, Any]] = []  # replies that go out together
        self.arrays: list[bytes] = []  # of these
        self.namespace = namespace
        self.watched: tuple[str, ...] = ()  # functions that may not be called at present
        self.watch = ExitStack()
        self.refused: Callable[[], str] = str
        self.settings = calls.Settings()

    # --- talking --------------------------------------------------------------------------------

    def answer_request(self, request: dict[str, Any], buffers: list[memoryview]) -> None:
        """Carry out a request and send the replies.

        Replies to cases are sent every ``BATCH_SECONDS``, or at once where the checker is careful.
        After one that hung, the rest is not tried.
        """
        self.request_id, self.forbids_of_request = request["id"], ()
        for number in request["drop"]:
            self.forget_object(number)
        together = BATCH_SECONDS if request.get("careful") is False else 0.0
        sent = time.monotonic()
        for step in self.steps_of_request(request, buffers):
            reply = self.add_reply(step)
            if time.monotonic() - sent >= together:
                self.send_ready_replies()
                sent = time.monotonic()
            if reply.get("kind") == "hung" or "timeout" in reply.get("error", ()):
                break
        self.send_ready_replies()

    def steps_of_request(
        self, request: dict[str, Any], buffers: list[memoryview]
    ) -> Iterator[Callable]:
        """Yield functions of an encoder that carry out a request, each of which returns a reply."""
        if request["op"] == "cases":
            yield from self.steps_of_cases(request, buffers)
            return
        handler = HANDLERS[request["op"]]
        decoder = Decoder(buffers, self.resolve_handle)
        if request["op"] == "cell":
            self.watch_calls_of(())  # what an answer may not call, another cell may
        else:
            self.settings.put_back()
        yield lambda encoder: within(
            request["limit"], lambda: handler(self, request, decoder, encoder)
        )

    def add_reply(self, step: Callable) -> dict[str, Any]:
        """Carry out a step and add its reply, or its error, to those that are ready; return it."""
        encoder = Encoder(self.describe_object)
        try:
            with redirect_stdout(self.printed), redirect_stderr(notebook_shell.Printed(0)):
                reply = step(encoder)
            self.add_module_changes(reply, encoder)
        except Gone:
            raise
        except BaseException as error:
            encoder.buffers.clear()
            reply: dict[str, Any] = {"error": calls.error_as_text(error)}
        reply |= {"out": self.printed.take_text(), "over": self.printed.chars_left < 0}
        reply["arrays"] = len(encoder.buffers)
        self.ready.append(reply)
        self.arrays += encoder.buffers
        return reply

    def send_ready_replies(self) -> None:
        """Send the replies that are ready, with their arrays, as one message."""
        if self.ready:
            message = {"id": self.request_id, "replies": self.ready}
            send_frame(self.connection, message, self.arrays)
            self.ready.clear()
            self.arrays.clear()

    # --- requests -------------------------------------------------------------------------------

    def do_cell(self, request: dict, decoder: Decoder, encoder: Encoder) -> dict[str, Any]:
        """Run one of the notebook's cells; return {}, or what failed in it."""
        try:
            notebook_shell.run_cell_source(
                request["source"], f"<{request['name']}>", self.namespace
            )
        except notebook_shell.Skipped as problem:
            error_form = calls.error_as_text(problem.__cause__ or problem)
            return {"error": error_form | {"skipped": problem.lines[:MAX_SKIPPED_LINES]}}
        return {}

    def do_names(self, request: dict, decoder: Decoder, encoder: Encoder) -> dict[str, Any]:
        """Return the values of the requested names that the submission has, as a reply.

        What each of these answers may not call is noted, and the watch on that starts.
        """
        values = {}
        self.forbids |= {name: tuple(functions) for name, functions in request["forbids"].items()}
        for name in request["names"]:
            value = self.namespace.get(name, NO_OBJECT)
            if value is NO_OBJECT or isinstance(value, types.ModuleType):
                continue
            try:
                values[name] = encoder.encode(value)
            except Unsendable:
                values[name] = {"o": self.describe_object(value)}
            number = self.handle_by_id.get(id(value))
            if number is not None and self.forbids.get(name):
                self.forbids_by_handle[number] = self.forbids[name]
        if forbids := next(filter(None, map(self.forbids.get, request["names"])), ()):
            # Begun before any value of a test arrives, which a call could reveal.
            self.watch_calls_of(forbids)
        return {"values": values}

    def do_call(self, request: dict, decoder: Decoder, encoder: Encoder) -> dict[str, Any]:
        """Use an object as the request says, one of ``calls.USES``, and return the reply.

        That has the value, the arguments that were changed, and a number for the graph of
        gradients, which is kept for ``do_backward``.
        """
        self.load_module_states(request.get("state", {}), decoder)
        calls.seed_generators(request.get("seed"))
        args = decoder.decode(request["args"])
        kwargs = decoder.decode(request["kwargs"])
        before = [calls.argument_snapshot(value) for value in (*args, *kwargs.values())]
        use = calls.USES[request["use"]]
        forbids = self.forbids_of_request = self.functions_forbidden_to(args[0]) if args else ()
        refused = self.watch_calls_of(forbids)
        with calls.gradient_context(request):
            args, kwargs, leaves = calls.with_computed_tensors_cloned(
                args, kwargs, decoder, request
            )
            try:
                value = use(*args, **kwargs)
            except StopIteration:
                if request["use"] != "next":
                    raise
                return {"stop": True}
            finally:  # asked whatever comes: a call that is not told of would be the next one's
                text = refused()
            if text:
                raise Forbidden(text)
        after = (*args, *kwargs.values())
        changed = [
            i
            for i, v in enumerate(after)
            if before[i] is not None and calls.argument_snapshot(v) != before[i]
        ]
        writes = request["writes"]  # else the checker's own arguments stay what they were
        same = [
            i
            for i, v in enumerate(after)
            if calls.is_numeric_array(v) and (writes or i not in changed)
        ]
        encoder.known.update({id(after[i]): {"A": i} for i in same})
        reply = {"value": encoder.encode(value)}
        encoder.known = {}
        reply["changed"] = [[i, encoder.encode(after[i]) if writes else None] for i in changed]
        if encoder.tracked:
            leaf_names = request.get("leaves", ())
            leaves += [self.handles[number]._parameters[name] for number, name in leaf_names]
            reply["graph"] = self.new_handle()
            self.graphs[reply["graph"]] = (list(encoder.tracked), leaves)
        return reply

    def watch_calls_of(self, forbids: tuple[str, ...]) -> Callable[[], str]:
        """Watch for calls of these functions; return a function that tells which one was called."""
        if forbids != self.watched:
            self.watch.close()
            self.watched = forbids
            self.refused = self.watch.enter_context(forbidding(forbids))
        return self.refused

    def functions_forbidden_to(self, used: Any) -> tuple[str, ...]:
        """Return the functions that an object may not call, if it is an answer or came of one."""
        bound = self.forbids_by_handle.get(self.handle_by_id.get(id(used), 0), ())
        if bound:
            return bound
        owner = getattr(used, "__self__", used)
        for name, functions in self.forbids.items():
            answer = self.namespace.get(name, NO_OBJECT)
            if answer is owner or answer is type(owner):
                return functions
        return ()

    def steps_of_cases(self, request: dict, buffers: list[memoryview]) -> Iterator[Callable]:
        """Yield, for each case of a check, a function that tries it and returns its reply.

        The first buffer says what the cases are, the others are their arrays.
        """
        trying = TrialSettings(tuple(request["names"]), 0.0, tuple(request["forbids"]))
        implementation = self.handles[request["target"]]
        seeds = request["seeds"] or repeat(None)
        refused = self.watch_calls_of(trying.forbids)
        self.settings.put_back()
        with alarm_ready(), quiet():
            for form, number in zip(json.loads(bytes(buffers[0])), seeds, strict=False):
                calls.seed_generators(number)
                decoder = Decoder(buffers, self.resolve_handle)
                step = partial(self.try_case, trying, refused, implementation, form, decoder)
                # What is returned may be slow to look at, too.
                yield lambda encoder, step=step: within(request["limit"], lambda: step(encoder))

    def try_case(
        self,
        trying: TrialSettings,
        refused: Callable[[], str],
        implementation: Any,
        form: Any,
        decoder: Decoder,
        encoder: Encoder,
    ) -> dict[str, Any]:
        """Try one case as a notebook's check would, and return the reply with its outcome.

        ``form`` is the case as it was sent; ``refused`` returns which forbidden function was
        called.
        """
        use, bound, args, kwargs = decoder.decode(form)
        caller = partial(CALLERS[use], *bound) if bound else CALLERS[use]
        with calls.gradient_context({"grad": True}):
            outcome = run_case(trying, implementation, Case(tuple(args), kwargs, use=caller))
        reply = {"kind": outcome.kind, "changed": outcome.mutated.split(", ")}
        value = encoder.encode(outcome.value)
        if text := refused():  # now, for a value may be worked out when it is looked at
            return reply | {
                "kind": "raised",
                "raised": calls.describe_class(Forbidden),
                "text": text,
            }
        if outcome.kind == "raised":
            return reply | {
                "raised": calls.describe_class(outcome.error or Exception),
                "text": outcome.text[: calls.MAX_ERROR_CHARS],
            }
        return reply | {"value": value}

    def do_backward(self, request: dict, decoder: Decoder, encoder: Encoder) -> dict[str, Any]:
        """Return the gradients of a call's inputs, given those of its outputs, as a reply."""
        import torch

        outputs, leaves = self.graphs[request["graph"]]
        output_gradients = decoder.decode(request["gradients"])
        pairs = [(o, g) for o, g in zip(outputs, output_gradients, strict=True) if g is not None]
        if not pairs:
            return {"gradients": encoder.encode([None] * len(leaves))}
        sums = [(o * g.conj()).real.sum() for o, g in pairs]
        total = sum(sums[1:], start=sums[0])  # one number, as in the callers
        # Retained: the test may ask for gradients of this call again.
        leaf_gradients = torch.autograd.grad(total, leaves, allow_unused=True, retain_graph=True)
        return {"gradients": encoder.encode(list(leaf_gradients))}

    # --- objects that stay here -----------------------------------------------------------------

    def new_handle(self) -> int:
        """Return a number that no object, and no graph of a call, had before."""
        self.count += 1
        return self.count

    def forget_object(self, number: int) -> None:
        """Forget an object of which the checker has no proxy any more."""
        for table in (self.graphs, self.modules, self.forbids_by_handle):
            table.pop(number, None)
        value = self.handles.pop(number, None)
        self.handle_by_id.pop(id(value), None)

    def handle_of(self, value: Any) -> int:
        """Return an object's handle, the number by which the checker knows it; a new one at need.

        A new one inherits the functions that the present request may not call.
        """
        handle = self.handle_by_id.get(id(value))
        if handle is None:
            handle = self.handle_by_id[id(value)] = self.new_handle()
            self.handles[handle] = value
            if self.forbids_of_request:
                self.forbids_by_handle[handle] = self.forbids_of_request
        return handle

    def describe_object(self, value: Any) -> dict[str, Any]:
        """Return an object's handle and kind, from which the checker makes its proxy."""
        torch = sys.modules.get("torch")
        description = {"h": self.handle_of(value), "type": type(value).__name__}
        if torch is not None and isinstance(value, torch.nn.Module):
            return {**description, "kind": "module"}
        if isinstance(value, type):
            module = torch is not None and issubclass(value, torch.nn.Module)
            bases = [b.__name__ for b in value.__mro__ if b.__module__.startswith("torch.nn.")]
            description |= {
                "kind": "class",
                "name": value.__name__,
                "module": module,
                "bases": bases,
            }
            return {**description, "signature": calls.parameters_of(value)}
        if callable(value) and not hasattr(type(value), "__next__"):
            name = getattr(value, "__name__", "")
            description |= {"kind": "function", "name": name if isinstance(name, str) else ""}
            return {**description, "signature": calls.parameters_of(value)}
        return {**description, "kind": "object"}

    def resolve_handle(self, form: dict[str, Any]) -> Any:
        """Return the object that a reference from the checker stands for.

        It is one of the submission's, a generator, an exception's class or a function of the
        checker's.
        """
        if "h" in form:
            return self.handles[form["h"]]
        if "G" in form:
            return calls.generator_in_state(form["G"])
        if "E" in form:
            return getattr(builtins, form["E"])
        return self.checker_function(form["C"], form.get("name", ""), form.get("plain", {}))

    def checker_function(self, number: int, name: str, plain: dict[str, Any]) -> Callable:
        """Return a function that has the checker call its own function of this ``number``.

        It has the name of that one and, as attributes, those of its ``plain`` values.
        """

        def call_in_checker(*args: Any, **kwargs: Any) -> Any:
            """Send the arguments to the checker; return or raise what its function did."""
            encoder = Encoder(self.describe_object)
            request = {"args": encoder.encode(list(args)), "kwargs": encoder.encode(kwargs)}
            # By the name of the present request: the checker takes nothing without it.
            request |= {"id": self.request_id, "callback": number}
            self.send_ready_replies()
            send_frame(self.connection, request, encoder.buffers)
            try:
                reply, buffers = receive_frame(self.connection)
            except EOFError:
                raise Gone from None
            if "error" in reply:
                kind = getattr(builtins, reply["error"]["type"], RuntimeError)
                raise kind(reply["error"]["message"])
            return Decoder(buffers, self.resolve_handle).decode(reply["value"])

        call_in_checker.__dict__.update(plain)
        call_in_checker.__name__ = name or "function"
        return call_in_checker

    # --- modules: the checker holds a copy of their parameters ----------------------------------

    def load_module_states(self, state: dict[str, Any], decoder: Decoder) -> None:
        """Give modules the parameters, buffers and mode that tests have set in their copies."""
        torch: Any = sys.modules.get("torch")
        new_parameters: dict[Any, Any] = {}  # by the id of the copy's parameter
        for number, changes in state.items():
            module = self.handles[int(number)]
            module.training = changes["training"]
            for name, form in changes["tensors"].items():
                value = decoder.decode(form["value"]).detach()
                old = module._parameters.get(name)
                if not form["parameter"]:
                    module._buffers[name] = value
                elif form["new"] or old is None:
                    # Names that share one parameter in the copy, as tied weights do, share it here.
                    key = form["id"]
                    if key not in new_parameters:
                        new_parameters[key] = torch.nn.Parameter(value, form["grad"])
                    module._parameters[name] = new_parameters[key]
                else:
                    old.data = value
                    old.requires_grad_(form["grad"])
            if int(number) in self.modules:
                self.modules[int(number)] = module_fingerprint(module)

    def add_module_changes(self, reply: dict[str, Any], encoder: Encoder) -> None:
        """Add to a reply the modules that are new to the checker, or have changed."""
        torch = sys.modules.get("torch")
        if torch is None:
            return
        descriptions = {}
        todo = [n for n, v in self.handles.items() if isinstance(v, torch.nn.Module)]
        while todo:
            number = todo.pop()
            module, before = self.handles[number], self.modules.get(number)
            if str(number) in descriptions or before == NOT_DESCRIBED:
                continue
            self.modules[number] = NOT_DESCRIBED  # if this raises, it costs whoever asked, once
            now = module_fingerprint(module)
            self.modules[number] = now
            if now == before:
                continue
            children = {k: m for k, m in module._modules.items() if m is not None}
            descriptions[str(number)] = calls.describe_module(module, encoder) | {
                "children": {name: self.describe_object(child) for name, child in children.items()}
            }
            todo += [self.handle_of(child) for child in children.values()]
        if descriptions:
            reply["modules"] = descriptions


HANDLERS: dict[str, Callable[[Worker, dict, Decoder, Encoder], dict[str, Any]]] = {
    "cell": Worker.do_cell,
    "names": Worker.do_names,
    "call": Worker.do_call,
    "backward": Worker.do_backward,
}


def run_worker(connection: Any, output: float) -> None:
    """Serve requests in a process that was forked for a submission; never return."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path.append("")  # where it is; last: a file of the submission's hides no library
    try:
        serve_requests(connection, output)
    finally:
        os._exit(1)
