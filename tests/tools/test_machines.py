"""The table of emulated machines: what makes a row fail, and one state from end to end."""

import os
import sys

import machines
import pytest
from machines import CommandRun, Machine, State, verdict

TRACED = "Traceback (most recent call last):\n  File x\nValueError: three\n"


@pytest.mark.parametrize(
    ("run", "holds", "words"),
    [
        (CommandRun("doctor", 0, "the jail holds", 1), True, "green"),
        (CommandRun("doctor", 1, "…\nno jail here: do this\n", 1), True, "no jail here: do this"),
        (CommandRun("check", None, "", 180), False, "does not end"),
        (CommandRun("check", 1, TRACED, 1), False, "traceback: ValueError: three"),
        (CommandRun("check", 0, TRACED, 1), False, "traceback: ValueError: three"),
        (CommandRun("check", 3, "\n", 1), False, "status 3, and not a word"),
        (CommandRun("check", -9, "Killed", 1), False, "ended by signal 9"),
        (CommandRun("demo", 0, "", 1, ("own.db",)), False, "writes to the user's own own.db"),
        (CommandRun("grade", 0, "", 1, jailed=False), False, "grades without a jail, unasked"),
        (
            CommandRun("grade in 16 lanes", 0, "", 1, jailed=False),
            False,
            "grades without a jail, unasked",
        ),
        (CommandRun("grade", 2, "no jail", 1, jailed=False), True, "no jail"),
    ],
)
def test_the_table_says_which_commands_succeeded(run, holds, words):
    assert verdict(run) == (holds, words)


def test_writes_into_the_home_folder_are_noticed(tmp_path, monkeypatch):
    code = (
        "import sys, os, pathlib; pathlib.Path.home().joinpath('own.db').touch();"
        "print(sys.modules['readline'], os.environ['ATTNCOURSE_DB'][-6:])"
    )
    monkeypatch.setattr(Machine, "words", lambda self, _: [sys.executable, "-c", code])
    monkeypatch.setattr(Machine, "make_course", lambda self: None)
    state = State("x", startup="import sys; sys.modules['readline'] = None")
    run = Machine(state, tmp_path).run("look", 60, True)
    assert run.written == ("own.db",)
    assert run.said.startswith("None own.db\n")
    assert verdict(run) == (False, "writes to the user's own own.db")


def test_a_command_that_does_not_end_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(Machine, "words", lambda self, _: ["sleep", "1000"])
    monkeypatch.setattr(Machine, "make_course", lambda self: None)
    run = Machine(State("x"), tmp_path).run("look", 0.1, True)
    assert verdict(run) == (False, "does not end")


def test_states_have_unique_names_and_known_commands():
    names = [state.name for state in machines.MACHINE_STATES]
    assert len(set(names)) == len(names)
    assert {
        c for state in machines.MACHINE_STATES for c in state.commands
    } <= machines.COMMANDS.keys()


def test_a_state_with_a_refused_call_from_end_to_end():
    state = next(state for state in machines.MACHINE_STATES if state.name == "no unshare")
    table_rows = list(machines.rows(State(state.name, ("doctor",), state.refused), full_run=False))
    assert [(row[1], row[2]) for row in table_rows] == [("doctor", True)]
    assert table_rows[0][3] != "green"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_python_that_another_user_may_not_start_is_named(tmp_path, monkeypatch):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "python").write_text("#!/bin/sh\n")
    (closed / "python").chmod(0o755)
    monkeypatch.setattr(machines.sys, "executable", str(closed / "python"))
    why = machines.not_here(State("another user", nobody=True))
    assert why == f"another user may not start {closed}/python"
    monkeypatch.setattr(machines.sys, "executable", "/bin/sh")
    assert machines.not_here(State("another user", nobody=True)) == ""
