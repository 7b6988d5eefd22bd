"""Students' questions on their grades: text files beside the feedback, and their answers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from attncourse.grading.course.folders import find_assignment, folders_in
from attncourse.grading.errors import UserError
from attncourse.grading.files import one_process_at_a_time, replace_bytes, replace_file
from attncourse.grading.gradebook.connection import find_gradebook
from attncourse.grading.gradebook.manual_grading import CommentEdit, edit_comments
from attncourse.grading.harmless import made_visible, one_line, shortened_text
from attncourse.grading.report import count
from attncourse.grading.results.written_answers import user_here
from attncourse.grading.spreadsheet import csv_table, records_in, rows_in, text_of_file
from attncourse.grading.submission.notebook import Assignment

QUESTION_FILE = re.compile(r"questions?(?:[-_ ].*)?\.txt", re.I)  # as a student calls it
QUESTIONS_FILE = "questions.csv"
QUESTIONS_HEAD = ("student", "exercise", "question", "asked", "answer")
ANSWERED = "answered_questions.csv"
ANSWERED_HEAD = ("time", "who", "student", "exercise", "question", "answer")
MAX_CHARACTERS_OF_QUESTION = 5_000  # of one question: a longer one is cut
MAX_BYTES_OF_QUESTIONS = 100_000  # of a file that is taken for questions


@dataclass(frozen=True)
class GradeQuestion:
    """A student's question on a grade, and its answer, "" while there is none.

    ``exercise`` is empty where the question names none; ``day`` is that of its file.
    """

    student: str
    exercise: str
    text: str
    day: str = ""
    answer: str = ""

    def is_asked_in(self, row: dict[str, str]) -> bool:
        """True if a table's row is about this question; the row may add an exercise to it."""
        is_same = row.get("student", "").strip() == self.student and (
            comparable_text(row.get("question", "")) == comparable_text(self.text)
        )
        return is_same and self.exercise in ("", row.get("exercise", "").strip())


def comparable_text(text: str) -> str:
    """Return a text without spaces and apostrophes, which a spreadsheet may change."""
    return re.sub(r"[\s']+", "", text)


def keep_question(course: Path, name: str, student: str, data: bytes) -> bool:
    """Put a file with questions beside a student's feedback; return False if it is there."""
    if len(data) > MAX_BYTES_OF_QUESTIONS:
        raise UserError(f"questions are read up to {MAX_BYTES_OF_QUESTIONS // 1000} kB")
    kept_files = question_files(course, name, student)
    if any(path.read_bytes() == data for path in kept_files):
        return False
    taken = {path.name for path in kept_files}
    numbered = (f"question-{name}{f'-{n}' if n > 1 else ''}.txt" for n in range(1, len(taken) + 2))
    free = next(name_of_file for name_of_file in numbered if name_of_file not in taken)
    replace_bytes(course / "feedback" / student / free, data)
    return True


def question_files(course: Path, name: str, student: str) -> list[Path]:
    """Return the files with a student's questions on an assignment, in order."""
    file_name = re.compile(rf"question-{re.escape(name)}(?:-(\d{{1,6}}))?\.txt")
    numbered_paths = []
    for path in (course / "feedback" / student).glob("question-*.txt"):
        match = file_name.fullmatch(path.name)
        if match and path.is_file() and not path.is_symlink():
            numbered_paths.append((int(match[1] or 1), path))
    return [path for _, path in sorted(numbered_paths)]


def questions_on(course: Path, name: str) -> list[GradeQuestion]:
    """Return all questions on an assignment with their answers, student by student."""
    exercises = exercise_names(find_assignment(course, name))
    _, answered = records_in(course / "reports" / name / ANSWERED)
    questions: dict[GradeQuestion, None] = {}  # a question that is asked twice is one
    for student in folders_in(course / "feedback"):
        for path in question_files(course, name, student):
            day = f"{datetime.fromtimestamp(path.stat().st_mtime, UTC):%Y-%m-%d}"
            for exercise, text in questions_in(text_of_file(path), exercises):
                questions.setdefault(GradeQuestion(student, exercise, text, day))
    return [with_known_answer(question, answered) for question in questions]


def with_known_answer(question: GradeQuestion, rows: list[dict[str, str]]) -> GradeQuestion:
    """Return a question with the last answer to it in these rows, and the row's exercise."""
    mine = [row for row in rows if question.is_asked_in(row)]
    if not mine:
        return question
    return replace(question, exercise=mine[-1]["exercise"], answer=mine[-1]["answer"])


def exercise_names(assignment: Assignment) -> dict[str, str]:
    """Return the grade ids of answers by the names that a student may use, in small letters.

    These names are the grade id, with and without the chapter before it, and a written answer's
    heading, which is its name on the feedback page.
    """
    chapter = assignment.name.partition("_")[2]
    ids_by_name = {}
    for cell in assignment.cells:
        if cell.solution and cell.grade_id:
            heading = cell.source.lstrip().partition("\n")[0]
            names = [cell.grade_id, f"{chapter}.{cell.grade_id}"]
            if not cell.code and heading.startswith("#"):
                names.append(heading.lstrip("# ").strip())
            ids_by_name |= {name.casefold(): cell.grade_id for name in names}
    return ids_by_name


def questions_in(text: str, exercises: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the exercise and the text of each question in a text; "" if it names no exercise."""
    questions: list[tuple[str, list[str]]] = [("", [])]
    for line in made_visible(text).split("\n"):
        before, colon, after = line.partition(":")
        exercise = exercises.get(before.strip(" `*\t").casefold(), "") if colon else ""
        if exercise:
            questions.append((exercise, [after]))
        else:
            questions[-1][1].append(line)
    for exercise, lines in questions:
        if question := "\n".join(lines).strip():
            yield exercise, shortened_text(question, MAX_CHARACTERS_OF_QUESTION)


def unanswered_questions(course: Path, name: str | None = None) -> dict[str, list[GradeQuestion]]:
    """Return the questions without an answer, by assignment; of all if ``name`` is None."""
    names = folders_in(course / "solutions") if name is None else [name]
    files = list((course / "feedback").glob("*/question-*.txt"))
    questions_by_name = {}
    for assignment in names:
        if any(path.name.startswith(f"question-{assignment}") for path in files):
            questions_by_name[assignment] = [
                question for question in questions_on(course, assignment) if not question.answer
            ]
    return {
        assignment: questions for assignment, questions in questions_by_name.items() if questions
    }


def question_lines(questions: dict[str, list[GradeQuestion]]) -> list[str]:
    """Return a line for each question, and lines on what to do next."""
    lines = [
        f"{name}  {question.student}  {question.exercise or '(no exercise)'}  asked "
        f"{question.day}: {one_line(question.text, 100)}"
        for name, open_questions in questions.items()
        for question in open_questions
    ]
    if not lines:
        return ["no open question"]
    return [*lines, *(f"next: attncourse questions {name}" for name in questions)]


def write_questions(course: Path, name: str) -> tuple[Path, int, int]:
    """Write the questions on an assignment as a table; return its path and two numbers.

    The numbers are of all questions, and of the unanswered ones.
    """
    questions = sorted(questions_on(course, name), key=lambda q: (bool(q.answer), q.exercise))
    if not questions:
        raise UserError(
            f"nobody has asked about {name}: a question is a text file, "
            f"feedback/STUDENT/question-{name}.txt, and collect puts it there"
        )
    rows = [(q.student, q.exercise, q.text, q.day, q.answer) for q in questions]
    place = course / "reports" / name / QUESTIONS_FILE
    number = sum(not question.answer for question in questions)
    return replace_file(place, csv_table([QUESTIONS_HEAD, *rows])), len(rows), number


# --- answering ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GivenAnswer:
    """An answer to enter: the question with the answer before, its exercise, the new answer."""

    question: GradeQuestion
    exercise: str
    text: str


def enter_question_answers(
    course: Path, name: str, path: Path, db: str | None = None
) -> tuple[int, list[str]]:
    """Enter the answers in such a table; return their number, and a line on whose they are.

    An empty answer leaves what there is. Raises ``UserError`` before anything is entered, for a row
    that is nobody's question or names no exercise of the assignment.
    """
    answers = answers_in_table(course, name, path)
    edits = [
        CommentEdit(answer.question.student, answer.exercise, partial(with_answer, answer))
        for answer in answers
    ]
    edit_comments(find_gradebook(course, db), name, edits)
    note_answers(course, name, answers)
    return len(answers), list(dict.fromkeys(answer.question.student for answer in answers))


def answers_in_table(course: Path, name: str, path: Path) -> list[GivenAnswer]:
    """Return the answers in a table that are new or changed."""
    if not path.is_file():
        raise UserError(f"{path} is not there: attncourse questions {name} makes one")
    head = (rows_in(path) or [[]])[0]
    if not set(QUESTIONS_HEAD) - {"asked"} <= set(head):
        raise UserError(f"{path}: expected the head {','.join(QUESTIONS_HEAD)} in its first line")
    questions, answers = questions_on(course, name), []
    exercises = exercise_names(find_assignment(course, name))
    for number, row in enumerate(records_in(path)[1], start=2):
        answer = made_visible(row.get("answer", "")).strip()
        if not answer:
            continue
        where = f"{path}, line {number}"
        question = next(
            (asked_question for asked_question in questions if asked_question.is_asked_in(row)),
            None,
        )
        if question is None:
            shown_student = one_line(row.get("student", ""), 60) or "nobody"
            raise UserError(f"{where}: there is no such question of {shown_student} on {name}")
        exercise = exercises.get(row.get("exercise", "").strip().casefold())
        if exercise is None:
            names = ", ".join(dict.fromkeys(exercises.values()))
            raise UserError(f"{where}: expected an exercise of {name} ({names})")
        if answer != question.answer:
            answers.append(GivenAnswer(question, exercise, answer))
    return answers


def with_answer(answer: GivenAnswer, comment: str) -> str:
    """Return a comment with a new answer, in place of the earlier one or behind the rest."""
    new = answer_in_comment(answer.question.text, answer.text)
    old = answer_in_comment(answer.question.text, answer.question.answer)
    if answer.question.answer and old in comment:
        return comment.replace(old, new)
    return f"{comment.rstrip()}\n\n{new}".strip()


def answer_in_comment(question: str, answer: str) -> str:
    """Return the text of a question and its answer in a comment."""
    return f"You asked: {question}\nAnswer: {answer}"


def note_answers(course: Path, name: str, answers: list[GivenAnswer]) -> None:
    """Add to the log who entered which answers, and when."""
    if not answers:
        return
    place = course / "reports" / name / ANSWERED
    with one_process_at_a_time(place):
        before: list[Any] = [[*row.values()] for row in records_in(place)[1]]
        now, user = datetime.now(UTC).isoformat(timespec="seconds"), user_here()
        new = [
            (now, user, g.question.student, g.exercise, g.question.text, g.text) for g in answers
        ]
        replace_file(place, csv_table([ANSWERED_HEAD, *before, *new]))


def open_questions_in_words(course: Path, name: str) -> str:
    """Return a sentence on how many questions on an assignment are open; "" for none."""
    open_questions = unanswered_questions(course, name).get(name, [])
    if not open_questions:
        return ""
    number, verb = (
        count(len(open_questions), "question"),
        "is" if len(open_questions) == 1 else "are",
    )
    return f"{number} of students {verb} open: attncourse questions {name}"
