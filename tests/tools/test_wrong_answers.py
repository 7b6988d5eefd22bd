"""The script that says what verdicts make of a folder of wrong answers."""

import json
import sys

import pytest
import wrong_answers

TRANSPOSED = "# wrong: A is transposed\ndef mix(A, X):\n    return A.swapaxes(-1, -2) @ X\n"
ADDED_ONE = "# wrong: 1 too much\ndef mix(A, X):\n    return np.matmul(A, X) + 1\n"
RIGHT = "# right\ndef mix(A, X):\n    return np.einsum('...ij,...jk', A, X)\n"
ANSWERS = {"mixing_mix_01": TRANSPOSED, "mixing_mix_02": ADDED_ONE, "right_mixing_mix_03": RIGHT}


@pytest.fixture
def answers_folder(tmp_path):
    for name, source in ANSWERS.items():
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    return tmp_path


def run_tool_main(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["wrong_answers.py", *map(str, arguments)])
    wrong_answers.main()


def test_every_answer_is_counted_by_what_its_verdict_is(answers_folder, monkeypatch, capsys):
    saved = answers_folder / "saved.json"
    run_tool_main(monkeypatch, answers_folder, "--save", saved)
    output = capsys.readouterr().out
    assert "right answers that passed: 2 of 2" in output  # on two seeds
    assert "names that a further seed does not give: 0" in output
    kinds = {(r["answer"], r["kind"]) for r in json.loads(saved.read_text(encoding="utf-8"))}
    assert kinds == {("mixing_mix_01", "named"), ("mixing_mix_02", "placed")}


def test_only_the_chosen_half_is_judged(answers_folder, monkeypatch, capsys):
    run_tool_main(monkeypatch, answers_folder, "--odd", "--quick", "--full")
    output = capsys.readouterr().out
    assert "mixing_mix_01, seed" in output
    assert "mixing_mix_02" not in output


def test_changed_verdicts_are_listed(answers_folder, monkeypatch, capsys):
    saved = answers_folder / "saved.json"
    run_tool_main(monkeypatch, answers_folder, "--quick", "--odd", "--save", saved)
    before = json.loads(saved.read_text(encoding="utf-8"))
    saved.write_text(json.dumps([before[0] | {"kind": "no words", "words": ""}]), encoding="utf-8")
    run_tool_main(monkeypatch, answers_folder, "--quick", "--odd", "--against", saved)
    assert "was no words: \n    now named: A is transposed" in capsys.readouterr().out


def test_a_name_that_a_further_seed_does_not_give_is_refuted():
    result = wrong_answers.SeedResult("a", 1, "", "named", "", ("one", "other"), 0.1, ("other",))
    assert not wrong_answers.is_refuted(result)
    assert wrong_answers.is_refuted(
        wrong_answers.SeedResult("a", 1, "", "named", "", ("one", ""), 0.1, ("one", "third"))
    )
