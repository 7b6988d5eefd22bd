"""Drills: wrong as they say, mended by their line alone, and nothing else that they say is untrue.

All are proved by ``python tools/drills.py --prove``; here a sample, by the tests' seed.
"""

import ast
import random
import re
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from drill_making import candidates
from drill_making.candidates import name_of_changes
from drill_making.choosing import with_ids
from drill_making.example_choice import best_example, possible_examples
from drill_making.examples import MAX_WEIGHTS, can_be_computed, without_weights
from drill_making.line_changes import RANK_BY_HAND, LineChange
from drill_making.overlapping import is_fair_name
from drill_making.proving import (
    drill_problem,
    limited,
    problem_in_words,
)
from drill_making.refreshing import refreshed
from drill_making.refused import NAMED_FOR_ANOTHER, NOBODY_WRITES, is_refused_line
from drill_making.sources import RightAnswer

from attncourse import STEMS
from attncourse.checks import chapter, exercises
from attncourse.checks.index import guide_place, index
from attncourse.practice.drills import (
    Drill,
    drill_from,
    drills_file,
    drills_of,
    highest_numbers,
    kept_entry,
)
from attncourse.practice.excerpt import count_of
from helpers.seeding import SEED

EVERY = [drill for stem in STEMS for drill in drills_of(stem)]
ONE_EXPRESSION = (
    "mixing.uniform_weights",
    "mixing.causal_mean_weights",
    "kqv.project",
    "efficient.kv_cache_bytes",
)
SAMPLE, LONGEST = 16, 30.0  # drills that are proved, and seconds of processor time for them


def changed(drill: Drill, **fields) -> Drill:
    return replace(drill, **fields)


def with_line(drill: Drill, line: str) -> tuple[str, ...]:
    return (*drill.code[: drill.line], line, *drill.code[drill.line + 1 :])


def test_a_sample_is_proved_again(record_property):
    """Named as they say, mended by the line, by no other; no wrong name is true."""
    luck = random.Random(SEED)
    began, proved = time.process_time(), 0
    for drill in luck.sample(EVERY, SAMPLE):
        assert not (said := drill_problem(drill, luck.randrange(10**6))), f"{drill.id}: {said}"
        proved += 1
        if time.process_time() - began > LONGEST:
            break
    record_property("drills proved", proved)
    assert proved


@pytest.mark.parametrize(
    ("spoiled", "said"),
    [
        (lambda d: changed(d, code=d.right), "names no mistake"),
        (lambda d: changed(d, name=d.wrong_names[0]), "the check says: "),
        (lambda d: changed(d, sentence="Something else."), "another sentence"),
        (lambda d: changed(d, wrong_names=(d.name, *d.wrong_names[1:])), "is true, too"),
        (lambda d: changed(d, mended=(d.code[d.line],)), "does not make it right"),
        (lambda d: changed(d, line=0 if d.line else 1), "does not make it right"),
        (lambda d: changed(d, code=("def broken(",)), "cannot be run"),
        (lambda d: changed(d, code=with_line(d, f"{d.code[d.line]} + 0")), "does nothing"),
    ],
)
def test_a_drill_that_is_untrue_is_refused(spoiled, said):
    drill = next(d for d in drills_of("kqv") if d.name == "divided by d_k")
    assert not drill_problem(drill, SEED)
    assert said in drill_problem(spoiled(drill), SEED)


@pytest.mark.parametrize("stem", STEMS)
def test_every_drill_is_fair_as_it_is_written(stem):
    said = {drill.id: problem_in_words(drill) for drill in drills_of(stem)}
    assert {name: why for name, why in said.items() if why} == {}


def test_a_wrong_name_that_is_true_in_words_is_refused():
    drill = next(d for d in drills_of("kqv") if d.name == "no scale")
    others = ("neither softmax nor scale", *drill.wrong_names[1:])
    said = drill_problem(changed(drill, wrong_names=others), SEED)
    assert said == "a wrong name may be true in words: neither softmax nor scale"


@pytest.mark.parametrize("stem", STEMS)
def test_what_is_kept_is_whole(stem):
    """Ids once; readable code without comments; names and places that there are."""
    known = {e.target: e for e in chapter(stem)}
    seen = set()
    for drill in drills_of(stem):
        exercise = known[drill.exercise]
        names = {m.name: m for m in exercise.mistakes}
        assert re.fullmatch(r"[A-Za-z0-9_.-]+", drill.id)
        assert drill.id not in seen
        seen.add(drill.id)
        assert 4 <= count_of(drill.code) <= 40
        assert max(map(len, drill.code)) <= 88
        assert not any(re.search(r"(^|\s)#", line) for line in drill.code)
        assert drill.code[drill.line] != drill.mended[0]
        ast.parse("\n".join(drill.right))
        assert len({drill.name, *drill.wrong_names}) == 4
        assert {drill.name, *drill.wrong_names} <= set(names)
        assert drill.sentence == names[drill.name].explanation
        assert drill.guide == guide_place(exercise, names[drill.name])
        assert drill.section == index()[drill.exercise].page
        assert drill.heading in exercise.section
        assert drill.example.got != drill.example.want
        weights = [one["value"] for one in drill.example.inputs if "." in one["name"]]
        assert not any(isinstance(value, dict) for value in weights)  # all of them, or none
        assert drill.example.call


def test_a_fifth_of_an_exercise_s_drills_is_easy_at_most():
    for target in {d.exercise for d in EVERY}:
        own = [d for d in EVERY if d.exercise == target]
        assert 5 * sum(d.easy for d in own) <= max(len(own), 5), target


def test_there_are_enough():
    by_exercise = Counter(drill.exercise for drill in EVERY)
    assert len(EVERY) >= 800
    assert len({(d.exercise, d.name) for d in EVERY}) >= 740
    assert {target for target in exercises() if by_exercise[target] < 8} == {*ONE_EXPRESSION}


def test_a_change_is_named_as_its_drill_is():
    """The first step of the making, with fewer draws, says what the proof says."""
    drill = next(d for d in drills_of("kqv") if d.name == "divided by d_k")
    name_of = name_of_changes(limited(exercises()[drill.exercise]), SEED)
    answer = RightAnswer(drill.exercise, "\n".join(drill.right), drill.setup, "a drill")
    change = LineChange(drill.line, drill.code[drill.line], drill.mended[0], 1)
    assert name_of(answer, change) == (drill.name, drill.easy)


def test_a_line_by_hand_is_named_however_many_are_like_it(monkeypatch):
    monkeypatch.setattr(candidates, "MAX_CHANGES_ALIKE", 1)
    drill = next(d for d in drills_of("kqv") if d.name == "divided by d_k")
    name_of = name_of_changes(limited(exercises()[drill.exercise]), SEED)
    answer = RightAnswer(drill.exercise, "\n".join(drill.right), drill.setup, "a drill")
    change = LineChange(drill.line, drill.code[drill.line], drill.mended[0], 1)
    assert name_of(answer, change)
    assert name_of(answer, change) is None
    assert name_of(answer, replace(change, rank=RANK_BY_HAND)) == (drill.name, drill.easy)


def test_drills_keep_their_ids():
    drills, numbers = list(drills_of("kqv")), highest_numbers("kqv")
    new = changed(drills[0], code=(*drills[0].code, "    "), id="")
    again = list(with_ids([*reversed(drills[1:]), new], numbers))
    assert [d.id for d in again[:-1]] == [d.id for d in reversed(drills[1:])]
    assert again[-1].id not in {d.id for d in drills}


def test_an_id_that_is_free_again_is_not_given_again():
    """A lecturer may have linked the drill that had it."""
    drills, numbers = list(drills_of("kqv")), {"kqv.project": 2, "kqv.attention_scores": 9}
    one, other = (changed(drills[0], id="", exercise=target) for target in numbers)
    ids = [drill.id for drill in with_ids([one, other, one], numbers)]
    assert ids == ["kqv-project-3", "kqv-attention_scores-10", "kqv-project-4"]
    assert numbers == {"kqv.project": 4, "kqv.attention_scores": 10}


@pytest.mark.parametrize("stem", STEMS)
def test_no_drill_has_a_higher_number_than_was_given(stem):
    numbers = highest_numbers(stem)
    for drill in drills_of(stem):
        assert int(drill.id.rpartition("-")[2]) <= numbers[drill.exercise]


def test_a_chapter_without_a_file_has_no_drills():
    assert drills_of("no_chapter") == ()
    assert not drills_file("no_chapter").exists()


def test_a_mistake_that_is_no_more_is_told_in_a_sentence():
    entry = kept_entry(drills_of("kqv")[0], setups := [])
    with pytest.raises(ValueError, match="no mistake called gone: make its drills anew"):
        drill_from(entry | {"name": "gone"}, setups)


def test_a_drill_is_kept_as_it_is():
    drill, setups = drills_of("kqv")[0], []
    entry = kept_entry(drill, setups)
    assert drill_from(entry, setups) == drill
    assert setups[entry["setup"]] == drill.setup
    assert entry["example"]["want"] == drill.example.want


def test_an_example_can_be_computed_with_what_is_shown():
    """Scores near 10,000 that differ in the fifth digit are shown alike, and so are no example."""
    exercise = exercises()["lookup.softmax"]

    def softmax_of_whole(x, axis=-1, temperature=1.0):
        z = np.moveaxis(x, axis, 0) // temperature
        e = np.exp(z - z.max(0))
        return np.moveaxis(e / e.sum(0), 0, axis)

    cases = [*possible_examples(exercise, softmax_of_whole, exercise.reference, (SEED,))]
    large = next(c for c in cases if c.trial.case.note == "scores near 10000")
    assert not can_be_computed(exercise, large.trial, softmax_of_whole)
    best = best_example([large, *cases], [], [m.name for m in exercise.mistakes], softmax_of_whole)
    assert can_be_computed(exercise, best.trial, softmax_of_whole)


def test_a_module_shows_all_its_weights_or_none():
    some = [{"name": "x", "value": [1]}, {"name": "W.weight", "value": {"shape": [7, 5]}}]
    example = {"call": "f(x)", "note": "one row", "inputs": some, "got": 1, "want": 2}
    bare = without_weights(example)
    assert bare["inputs"] == some[:1]
    assert bare["note"] == "one row; weights drawn at random"
    whole = example | {"inputs": [some[0], {"name": "W.weight", "value": [[1]]}]}
    assert without_weights(whole) == whole
    many = [{"name": f"W_{i}.weight", "value": [[1]]} for i in range(MAX_WEIGHTS + 1)]
    assert without_weights(whole | {"inputs": some[:1] + many})["inputs"] == some[:1]


def test_a_wrong_name_that_came_to_be_unfair_is_another_one():
    drill = next(d for d in drills_of("kqv") if d.name == "no scale")
    unfair = changed(drill, wrong_names=("neither softmax nor scale", *drill.wrong_names[1:]))
    again = refreshed(unfair, 5)
    assert not problem_in_words(again)
    assert again.wrong_names[:2] == drill.wrong_names[1:]
    assert not drill_problem(again, SEED, other_lines=False)


def test_a_guard_in_right_code_is_no_wrong_name():
    assert not is_fair_name("a guard in the denominator", ("return e / (e.sum(0) + 1e-12)",))
    assert is_fair_name("a guard in the denominator", ("return e / e.sum(0)",))
    assert not is_fair_name("something is done to the vectors", ())


def test_lines_that_readers_refused_are_no_drills():
    line = next(iter(NOBODY_WRITES["lookup.soft_lookup"]))
    assert is_refused_line("lookup.soft_lookup", f"    {line}")
    assert not is_refused_line("lookup.softmax", line)
    assert {*NOBODY_WRITES, *NAMED_FOR_ANOTHER} <= {*exercises()}


@pytest.mark.parametrize(
    ("line", "tells"),
    [
        ("left[query, key] += False", True),
        ("left[query, key] = False", False),
        ("allowed |= True", True),
        ("i += 1", False),
        ("if 2 == 0:", True),
        ("if width % 2 == 0:", False),
        ("if not 0 <= k < n_vocab:", False),
        ("weights = x[..., 0:2] > 0", False),
        ("if d % -1:", True),
        ("if d % -10:", False),
        ("return scores[..., -1, :] > 1", False),
    ],
)
def test_a_line_that_no_right_code_has_is_refused(line, tells):
    """Wherever it stands: it tells at once where to look."""
    assert is_refused_line("kqv.project", f"    {line}") == tells
