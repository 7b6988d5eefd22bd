"""Due dates, extensions and late penalties count as nbgrader counts them."""

import csv
import io
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from traitlets.config import Config
from typer.testing import CliRunner

from attncourse.grading.cli import app
from attncourse.grading.course.dates import (
    days_after,
    due_of,
    moment_in,
    parse_instant,
    span_in_words,
    zone_of,
)
from attncourse.grading.course.extensions import (
    ExtensionDays,
    read_extensions,
    write_extensions,
)
from attncourse.grading.course.settings import read_settings
from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.assignments import record_assignment
from attncourse.grading.gradebook.connection import find_gradebook, open_gradebook
from attncourse.grading.gradebook.submissions import grant_extension
from attncourse.grading.nbgrader.release import release_assignment
from attncourse.grading.results.class_results import class_results, lateness_in_words
from attncourse.grading.results.export import FORMATS, write_export
from attncourse.grading.results.page import class_page
from attncourse.grading.results.summary import Summary
from attncourse.grading.results.terminal import at_a_glance
from helpers.driver_runs import grade
from helpers.small_class import make_report, refuses, run, write_gradebook
from helpers.small_course import NAME, hand_in, make_course, small

CONFIG = """
c = get_config()
c.CourseDirectory.course_id = "attention"
c.NbGraderAPI.timezone = "Europe/Berlin"
c.Assignments.due = {"01_small": "2026-10-12 23:59"}
c.AssignLatePenalties.plugin_class = "attncourse.grading.nbgrader.late_days.LateDays"
c.LateDays.percent = 10
"""
BERLIN = zone_of(Config({"NbGraderAPI": {"timezone": "Europe/Berlin"}}))


@pytest.fixture
def course(tmp_path) -> Path:
    make_course(tmp_path)
    (tmp_path / "nbgrader_config.py").write_text(CONFIG)
    for student, stamp in {
        "in-time": "2026-10-12 21:59:00 UTC",
        "minutes": "2026-10-12 22:09:00 UTC",
        "days": "2026-10-14 09:59:00 UTC",
        "extended": "2026-10-14 09:59:00 UTC",
    }.items():
        data = small()
        path = hand_in(tmp_path, student, data + b" " * ((2 - len(data)) % 3))  # 2 points a cell
        path.with_name("timestamp.txt").write_text(stamp + "\n")
    return tmp_path


def lateness_by_student(course: Path) -> dict[str, tuple]:
    """Return seconds late, days of extension and points off, by student."""
    results = class_results(course, NAME).results
    return {r.student: (r.late, r.extension, round(r.penalty, 6)) for r in results}


# --- dates --------------------------------------------------------------------------------------

INSTANTS = {
    "2026-10-12 23:59": "2026-10-12 21:59:00",  # the class's zone, in summer
    "2026-12-12T23:59:30": "2026-12-12 22:59:30",  # and in winter
    "2026-10-12 23:59 UTC": "2026-10-12 23:59:00",
    "2026-10-12 23:59:00Z": "2026-10-12 23:59:00",
    "2026-10-12 9:05 +05:30": "2026-10-12 03:35:00",
    "2026-10-12 23:59 America/New_York": "2026-10-13 03:59:00",
    "2026-10-12 23:59:00.25 UTC": "2026-10-12 23:59:00.250000",
}


@pytest.mark.parametrize("text", INSTANTS)
def test_a_date_is_read_as_utc(text):
    assert str(parse_instant(text, BERLIN)) == INSTANTS[text]


MOMENTS = st.datetimes(datetime(2015, 1, 1), datetime(2035, 1, 1)).map(
    lambda local: local.replace(microsecond=0)
)
ZONES = st.sampled_from(
    ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Cairo"]
).map(ZoneInfo)


@given(MOMENTS, ZONES, st.sampled_from(["%z", "%:z", "%Z"]), st.sampled_from(["", " "]))
def test_a_moment_is_read_however_it_is_written(local, zone, offset_format, space):
    """Offsets with and without a colon, or a zone's letters, after a space or none."""
    moment = local.replace(tzinfo=UTC).astimezone(zone)
    offset = moment.strftime("%z")
    offset = (
        f"{offset[:3]}:{offset[3:]}" if offset_format == "%:z" else moment.strftime(offset_format)
    )
    expected = local
    for text in (
        f"{moment:%Y-%m-%d %H:%M:%S}{space if offset_format != '%Z' else ' '}{offset}",
        f"{moment:%Y-%m-%dT%H:%M:%S}{offset if offset_format != '%Z' else moment.isoformat()[19:]}",
        f"{local:%Y-%m-%dT%H:%M:%S.000000}Z",
        f"{local:%A, %d %B %Y, %I:%M:%S %p} UTC",
    ):
        assert parse_instant(text, zone) == expected


@given(MOMENTS, ZONES)
def test_a_time_without_a_zone_favours_the_student(local, zone):
    text = f"{local:%Y-%m-%d %H:%M:%S}"
    first, last = sorted(
        local.replace(tzinfo=zone, fold=fold).astimezone(UTC).replace(tzinfo=None)
        for fold in (0, 1)
    )
    assert moment_in(text, zone) == (first, False)
    assert parse_instant(text, zone, pick=max) == last


def test_repeated_and_skipped_hours_favour_the_student():
    for text, handed_in, due in (
        ("2026-10-25 02:30", "2026-10-25 00:30:00", "2026-10-25 01:30:00"),
        ("2026-03-29 02:30", "2026-03-29 00:30:00", "2026-03-29 01:30:00"),
    ):
        assert str(parse_instant(text, BERLIN)) == handed_in
        assert str(parse_instant(text, BERLIN, pick=max)) == due


DATES_IN_WORDS = [
    "Monday, 12 October 2026, 11:59 PM",
    "Monday, October 12, 2026, 11:59 PM",
    "Montag, 12. Oktober 2026, 23:59",
    "lundi 12 octobre 2026, 23:59",
    "lunes, 12 de octubre de 2026, 23:59",
    "ponedjeljak, 12. listopada 2026., 23:59",  # in Polish, listopada is November
    "понедельник, 12 октября 2026, 23:59",
    "2026年 10月 12日(月曜日) 23:59",
    "12.10.2026 23:59",
    "٢٠٢٦-١٠-١٢ ٢٣:٥٩",
]


@pytest.mark.parametrize("text", DATES_IN_WORDS)
def test_dates_are_read_in_platforms_languages(text):
    assert parse_instant(text, BERLIN) == datetime(2026, 10, 12, 21, 59)


@pytest.mark.parametrize("language", ["de", "fr", "es", "it", "nl", "pl", "ru", "sv", "tr", "cs"])
def test_dates_written_by_babel_are_read(language):
    from babel.dates import format_datetime

    for month in range(1, 13):
        moment = datetime(2026, month, 12, 10, 7)
        date_format = "EEEE, d MMMM y, HH:mm"
        text = format_datetime(moment, date_format, locale=language)
        assert parse_instant(text, UTC) == moment, text


@pytest.mark.parametrize(
    "text", ["Mon", "Monday, 11:59 PM", "12 October, 11:59 PM", "October 2026", "12 October 2026"]
)
def test_an_incomplete_date_is_not_completed_from_today(text):
    with pytest.raises(ValueError, match="is no date"):
        parse_instant(text, BERLIN)


BAD_DATES = {
    "2026-10-12": "2026-10-12 has no time of day: write 2026-10-12 23:59",
    "2026-02-30 12:00": "is no date: expected one such as 2026-10-12 23:59",
    "12/10/2026 23:59": "may be two days: write it as in 2026-10-12 23:59",
    "2026-10-12 23:59 CST": "CST is the name of several time zones: write the difference",
    "2026-10-12 23:59 XYZ": "no time zone is called XYZ; one is Europe/Berlin",
    "0001-01-01 00:00 +01:00": "the year 1 is none of a course's",
    "soon": "is no date",
    "": "is no date",
}


@pytest.mark.parametrize("text", BAD_DATES)
def test_a_bad_date_is_refused_in_one_line(text):
    with pytest.raises(ValueError, match=BAD_DATES[text]) as error:
        parse_instant(text, BERLIN)
    assert "\n" not in str(error.value)


def test_a_date_without_a_zone_is_never_guessed():
    config = Config({"Assignments": {"due": {NAME: "2026-10-12 23:59"}}})
    with pytest.raises(UserError, match=r"c.Assignments.due of 01_small: .* has no time zone"):
        due_of(config, NAME)
    config.NbGraderAPI.timezone = "Mars/Olympus"
    with pytest.raises(UserError, match=r"c.NbGraderAPI.timezone: no time zone is called Mars"):
        due_of(config, NAME)
    config.NbGraderAPI.timezone = "Europe/Berlin"
    assert due_of(config, NAME) == datetime(2026, 10, 12, 21, 59)
    assert due_of(config, "02_other") is None
    config.Assignments.due = "tomorrow"
    with pytest.raises(UserError, match=r"c.Assignments.due: expected \{"):
        due_of(config, NAME)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"nbgrader_config.py": "c = get_config()\n1 / 0\n"}, "nbgrader_config.py, line 2: Zero"),
        ({"course_settings.py": "\n\nd.x = 1\n"}, "course_settings.py, line 3: NameError"),
        ({"course_settings.py": "c.x = (\n"}, "course_settings.py, line 1: SyntaxError"),
        ({"course_settings.py": "import own\n", "own.py": "1 / 0\n"}, "own.py, line 1: Zero"),
    ],
)
def test_an_error_in_the_settings_names_file_and_line(tmp_path, files, message):
    config = 'c = get_config()\nload_subconfig("course_settings.py")\n'
    for name, text in ({"nbgrader_config.py": config} | files).items():
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError) as error:
        read_settings(tmp_path)
    assert str(error.value).startswith(f"cannot read {tmp_path}/{message}")


def test_spans_of_time_are_written_in_words():
    words_by_seconds = {
        20: "1 min",
        600: "10 min",
        9000: "2.5 h",
        86400: "1 day",
        129600: "1.5 days",
    }
    words_by_seconds |= {
        86_401: "1.1 days",
        90_000: "1.1 days",
        172_800: "2 days",
        3601: "1.1 h",
        0.1 * 86400 * 30: "3 days",
    }
    assert {seconds: span_in_words(seconds) for seconds in words_by_seconds} == words_by_seconds


def test_lateness_says_how_many_days_have_begun():
    """The penalty counts days begun, so 25 hours must not read as one day."""
    day = 86_400
    words_by_seconds = {
        600: "10 min late: 7 points taken off",
        day: "1 day late: 7 points taken off",
        day + 3600: "1.1 days late, 2 days begun: 7 points taken off",
        2 * day: "2 days late: 7 points taken off",
        2 * day + 60: "2.1 days late, 3 days begun: 7 points taken off",
    }
    assert {
        seconds: lateness_in_words(seconds, 7) for seconds in words_by_seconds
    } == words_by_seconds


# --- what counts --------------------------------------------------------------------------------


def test_settings_extensions_and_penalties_reach_the_gradebook(course, marker):
    # An extension can be granted before anything is graded.
    grant_extension(find_gradebook(course), "extended", NAME, 2)
    grade(course)
    tenth = 0.6
    assert lateness_by_student(course) == {
        "in-time": (0, 0, 0),
        "minutes": (600, 0, tenth),
        "days": (129600, 0, 2 * tenth),
        "extended": (0, 2, 0),
    }
    with open_gradebook(find_gradebook(course)) as gradebook:  # nbgrader's own columns say the same
        assert gradebook.find_assignment(NAME).duedate == datetime(2026, 10, 12, 21, 59)
        submission = gradebook.find_submission(NAME, "extended")
        assert (submission.extension, submission.total_seconds_late) == (timedelta(days=2), 0)
        gradebook.grant_extension(NAME, "minutes", days=1)  # nbgrader's own way
    grade(course)
    assert lateness_by_student(course)["minutes"] == (0, 1, 0)  # stays
    grant_extension(find_gradebook(course), "extended", NAME, 0)
    assert read_extensions(course) == {}
    grade(course)
    assert lateness_by_student(course)["extended"] == (129600, 0, 2 * tenth)


@given(MOMENTS, ZONES, st.integers(1, 9))
def test_an_extra_day_ends_at_the_same_hour_across_clocks(due, zone, days):
    local_due = due.replace(tzinfo=UTC).astimezone(zone)
    end = days_after(due, days, zone).replace(tzinfo=UTC).astimezone(zone)
    expected = local_due.replace(tzinfo=None) + timedelta(days=days)
    existing = expected.replace(tzinfo=zone).astimezone(UTC).astimezone(zone)
    assert end.replace(tzinfo=None) == existing.replace(tzinfo=None) or end.fold != existing.fold
    if existing.replace(tzinfo=None) == expected:  # no clock skips it
        assert end.replace(tzinfo=None) == expected


def test_an_extra_day_may_have_25_hours(course, marker):
    """Clocks go back in the night after the due date: that day has 25 hours."""
    (course / "nbgrader_config.py").write_text(
        CONFIG.replace("2026-10-12 23:59", "2026-10-24 20:00")
    )
    stamps = {  # by the clocks of Berlin
        "in-time": "2026-10-24 20:00:00 +0200",
        "minutes": "2026-10-24 20:10:00",
        "days": "2026-10-25 20:00:00 +01:00",
        "extended": "2026-10-25 21:00:00 CET",
    }
    for student, stamp in stamps.items():
        (course / "submitted" / student / NAME / "timestamp.txt").write_text(stamp + "\n")
    grant_extension(find_gradebook(course), "extended", NAME, 1)
    grade(course)
    expected = {
        "in-time": (0, 0, 0),
        "minutes": (600, 0, 0.6),
        "days": (86400, 0, 0.6),  # a day, and no second one begun
        "extended": (3600, 1, 0.6),  # an hour behind a day
    }
    assert lateness_by_student(course) == expected
    with open_gradebook(find_gradebook(course)) as gradebook:
        assert gradebook.find_submission(NAME, "extended").extension == timedelta(hours=25)
    report = (course / "reports" / NAME / "minutes.json").read_text()
    assert "timestamp.txt names no time zone: read in Europe/Berlin" in report
    write_export(course, NAME, "csv")
    table = (course / "reports" / NAME / "grades.csv").read_text("utf-8-sig")
    assert "2026-10-25 21:00:00 +0100" in table


def test_an_unreadable_hand_in_time_costs_no_points(course, marker):
    stamp = course / "submitted" / "days" / NAME / "timestamp.txt"
    for text, has_penalty in (("2026-10-14 12:00:00 +0200", True), ("yesterday", False)):
        stamp.write_text(text + "\n")
        grade(course)
        assert bool(lateness_by_student(course)["days"][2]) == has_penalty
    report = (course / "reports" / NAME / "days.json").read_text()
    assert "yesterday is no date" in report
    assert "counted as handed in on time" in report


def test_the_formgraders_due_date_stays_without_a_setting(course, marker):
    (course / "nbgrader_config.py").write_text(CONFIG.replace("01_small", "02_other"))
    grade(course)
    with open_gradebook(find_gradebook(course)) as gradebook:
        assert gradebook.find_assignment(NAME).duedate is None
        gradebook.update_or_create_assignment(NAME, duedate="2026-10-12 22:00:00 UTC")
    grade(course)
    assert lateness_by_student(course)["minutes"][0] == 540
    (course / "nbgrader_config.py").write_text(CONFIG)
    release_assignment(course, NAME)
    with open_gradebook(find_gradebook(course)) as gradebook:
        assert gradebook.find_assignment(NAME).duedate == datetime(2026, 10, 12, 21, 59)


def test_a_penalty_is_a_share_for_each_day_begun():
    from attncourse.grading.course.late import SECONDS_OF_DAY
    from attncourse.grading.nbgrader.late_days import LateDays

    rule = LateDays(percent=10, grace_minutes=15)
    points_by_seconds = {
        60: 0,
        900: 0,
        901: 4,
        SECONDS_OF_DAY: 4,
        SECONDS_OF_DAY + 1: 8,
        20 * SECONDS_OF_DAY: 40,
    }
    assert {
        seconds: rule.late_submission_penalty("ada", 40, seconds) for seconds in points_by_seconds
    } == points_by_seconds


# --- what is shown ------------------------------------------------------------------------------


def test_the_class_table_shows_who_was_late(course, marker, capsys):
    grade(course)
    lines = capsys.readouterr().out.splitlines()
    line_number = next(n for n, line in enumerate(lines) if line.split()[:1] == ["days"])
    assert lines[line_number].split() == ["days", "6", "/", "7"]
    assert lines[line_number + 1].strip() == "1.5 days late, 2 days begun: 1.2 points taken off"
    grade(course, "in-time")
    assert "late" not in capsys.readouterr().out


@pytest.fixture
def late_course(tmp_path) -> Path:
    """Make a graded course in which ada and cy were late, and bob and cy have an extension."""
    reports = [make_report("ada", 2, 1, 4), make_report("bob", 2, 1, 4), make_report("cy", 2, 1, 4)]
    write_gradebook(tmp_path, reports, late={"ada": 1.5})
    (tmp_path / "solutions" / NAME).mkdir(parents=True)
    with open_gradebook(find_gradebook(tmp_path)) as gradebook:
        gradebook.update_or_create_assignment(NAME, duedate="2026-10-12 12:00:00 UTC")
        for student, hour in {"ada": 18, "bob": 11, "cy": 14}.items():
            stamp = datetime(2026, 10, 13, hour)
            gradebook.update_or_create_submission(NAME, student, timestamp=stamp)
        gradebook.grant_extension(NAME, "bob", days=1)
        gradebook.grant_extension(NAME, "cy", days=1)
    return tmp_path


def test_report_and_page_show_who_was_late(late_course):
    summary = Summary(class_results(late_course, NAME))
    console = Console(width=80, file=io.StringIO())
    console.print(at_a_glance(summary))
    rows = [line.split() for line in console.file.getvalue().splitlines()]
    assert ["handed", "in", "late", "(2)", "late", "points", "off", "extension"] in rows
    assert ["ada", "1.3", "days", "1.5"] in rows
    assert ["cy", "2.0", "h", "0", "1", "day"] in rows
    shown = class_page(summary)
    assert "(1.3 days late: −1.5)" in shown
    assert "(2.0 h late)" in shown


def test_every_export_shows_who_was_late(late_course):
    exports = {
        file_format: write_export(late_course, NAME, file_format)
        for file_format in FORMATS
        if file_format != "totals"
    }
    reports = late_course / "reports" / NAME
    rows = csv.DictReader(io.StringIO((reports / "grades.csv").read_text("utf-8-sig")))
    columns_by_student = {
        r["student"]: (r["days_late"], r["extension_days"], r["late_penalty"]) for r in rows
    }
    assert columns_by_student == {
        "ada": ("1.25", "0", "1.5"),
        "bob": ("0", "1", "0"),
        "cy": ("0.083333", "1", "0"),
    }
    moodle = (reports / "moodle.csv").read_text()
    assert "1.3 days late, 2 days begun: 1.5 points taken off" in moodle
    assert "2.0 h late, with 1 day more than others" in moodle
    assert moodle.count(" late") == 2
    assert "late penalties are taken off already" in " ".join(exports["canvas"].remarks)
    results = (reports / "gradescope" / "ada" / "results.json").read_text()
    assert "1.3 days late, 2 days begun: 1.5 points taken off" in results
    assert '"days_late": 1.25' in results


# --- the command, and bad input -----------------------------------------------------------------


def test_extend_gives_more_time_and_says_until_when(course):
    def extend(*arguments: str) -> str:
        options = ["--course", str(course), "--days"]
        result = CliRunner().invoke(app, ["extend", *arguments[:2], *options, arguments[2]])
        if result.exception:
            raise result.exception
        return result.output

    message = f"extended has 2 days more for {NAME}, until 2026-10-14 23:59 Europe/Berlin"
    assert extend("extended", NAME, "2") == f"{message}; next: attncourse grade {NAME}\n"
    assert "until 2026-10-14 11:59 Europe/Berlin" in extend("days", NAME, "1.5")
    text = (course / "extensions.csv").read_text()
    assert text == f"student,assignment,days\ndays,{NAME},1.5\nextended,{NAME},2\n"
    (course / "nbgrader_config.py").write_text(CONFIG.replace("01_small", "02_other"))
    assert "and it has no due date yet" in extend("days", NAME, "1.5")
    record_assignment(find_gradebook(course), NAME)
    with open_gradebook(find_gradebook(course)) as gradebook:  # as the formgrader does
        gradebook.update_or_create_assignment(NAME, duedate="2026-10-12 20:00:00 UTC")
    assert "until 2026-10-14 10:00 Europe/Berlin" in extend("days", NAME, "1.5")
    with pytest.raises(UserError, match=r"called extnded.*did you mean extended\?"):
        extend("extnded", NAME, "2")
    with pytest.raises(UserError, match=r"01_smal; did you mean 01_small\?"):
        extend("extended", "01_smal", "2")
    assert (course / "extensions.csv").read_text() == text


def test_extend_suggests_ids_for_a_name(course):
    course_gradebook = find_gradebook(course)
    with open_gradebook(course_gradebook) as gradebook:
        for student in ("s11", "s12"):
            gradebook.add_student(student, first_name="Anna", last_name="Schmidt")
        gradebook.add_student("s13", email="bo@uni.example")
    for name, suggestion in {
        "anna schmidt": "s11 or s12",
        "Schmidt": "s11 or s12",
        "bo@uni.example": "s13",
    }.items():
        with pytest.raises(UserError, match=rf"did you mean {suggestion}\?"):
            grant_extension(course_gradebook, name, NAME, 1)


def test_extend_writes_one_day_in_the_singular(course):
    options = ["--course", str(course), "--days", "1"]
    result = CliRunner().invoke(app, ["extend", "days", NAME, *options])
    assert "has 1 day more" in result.output


def test_a_due_date_of_an_unknown_assignment_is_refused(course):
    settings = course / "nbgrader_config.py"
    settings.write_text(CONFIG.replace("01_small", "01_smal"))
    course_gradebook = find_gradebook(course)
    for command in (
        lambda: record_assignment(course_gradebook, NAME),
        lambda: release_assignment(course, NAME),
        lambda: grant_extension(course_gradebook, "days", NAME, 2),
    ):
        with pytest.raises(UserError, match=r"c.Assignments.due: .* 01_smal; did you mean 01_sm"):
            command()


@pytest.mark.parametrize("days", [-1, float("nan"), float("inf"), 1e9])
def test_impossible_extensions_are_refused(course, days):
    with pytest.raises(UserError, match="--days: expected 0 to 3650 days"):
        grant_extension(find_gradebook(course), "days", NAME, days)
    assert not (course / "extensions.csv").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ada,2\n", "expected the head student,assignment,days"),
        (
            "student,assignment,days\nada,01_small,two\n",
            "line 2: expected a number of days, got two",
        ),
        (
            "student,assignment,days\nada,01_small\n",
            "line 2: expected a number of days, got nothing",
        ),
        ("days,student,assignment\n2\n", "line 2: expected a student and an assignment"),
        ("student,assignment,days\nada,01_small," + "1" * 200_000, "is no table of"),
    ],
)
def test_a_bad_extensions_file_is_refused_in_one_line(tmp_path, text, message):
    (tmp_path / "extensions.csv").write_text(text)
    with pytest.raises(UserError) as error:
        read_extensions(tmp_path)
    assert message in str(error.value)


def test_ids_in_the_extensions_file_are_no_formulas(tmp_path):
    days = {(student, NAME): ExtensionDays(2) for student in ("ada", "=cmd|' C'!A0", "-x")}
    text = write_extensions(tmp_path, days).read_text()
    assert f"\n'=cmd|' C'!A0,{NAME},2\n" in text
    assert read_extensions(tmp_path) == days


def test_extend_all_covers_every_assignment(tmp_path):
    course = make_course(tmp_path, ada=small())
    (course / "solutions" / "02_other").mkdir()
    process = run("extend", "ada", "--all", "--days", 2, cwd=course)
    assert len(process.stdout.splitlines()) == 2, process
    extensions = read_extensions(course)
    assert {name: extension.granted for (_, name), extension in extensions.items()} == {
        NAME: 2,
        "02_other": 2,
    }
    refuses(run("extend", "ada", "--days", 2, cwd=course), "name one assignment, or all of them")


def test_extend_takes_a_list_of_students(tmp_path):
    course = make_course(tmp_path, ada=small(), bob=small(), cy=small())
    (tmp_path / "b.csv").write_text("id,email\nbob,b@x.org\ncy,c@x.org\n")
    process = run("extend", tmp_path / "b.csv", NAME, "--days", 2, cwd=course)
    assert "each of the 2 students of" in process.stdout, process
    assert {
        student: extension.granted for (student, _), extension in read_extensions(course).items()
    } == {
        "bob": 2,
        "cy": 2,
    }
    (tmp_path / "b.csv").write_text("id,email\ndan,d@x.org\nada,a@x.org\n")
    refuses(run("extend", tmp_path / "b.csv", NAME, "--days", 1, cwd=course), "called dan")
    assert ("ada", NAME) not in read_extensions(course)  # all of them, or nobody
    (tmp_path / "b.csv").write_text("id,email\n")
    refuses(run("extend", tmp_path / "b.csv", NAME, "--days", 1, cwd=course), "b.csv")
