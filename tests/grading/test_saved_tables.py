"""Tables that a person has opened and saved: each reader takes what a spreadsheet has left."""

import pytest

from attncourse.grading.collect.roster import read_roster
from attncourse.grading.course.extensions import ExtensionDays, read_extensions
from attncourse.grading.course.folders import read_record, record_path
from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.changes import append_rows
from attncourse.grading.results.canvas import read_canvas_roster as read_canvas
from attncourse.grading.spreadsheet import rows_in

# As Excel saves: "CSV UTF-8", "CSV", "Unicode text", and the second in a country of commas.
SAVED = {
    "utf-8": lambda text: text.encode(),
    "with a mark": lambda text: text.encode("utf-8-sig"),
    "windows": lambda text: text.encode("cp1252"),
    "unicode text": lambda text: text.replace(",", "\t").encode("utf-16"),
    "semicolons": lambda text: text.replace(",", ";").encode("cp1252"),
    "for Excel": lambda text: f"sep=;\r\n{text.replace(',', ';')}".encode(),
}
saved = pytest.mark.parametrize("save", SAVED.values(), ids=SAVED)
TOO_LONG = "student,ID,Section\n" + "x" * 200_000


@saved
def test_a_collection_survives_a_spreadsheet(tmp_path, save):
    place = record_path(tmp_path, "05_kqv")
    place.parent.mkdir(parents=True)
    place.write_bytes(save("student,platform,handed_in_as\r\nzoë,moodle,Zoë_1/a.ipynb\r\n"))
    assert read_record(tmp_path, "05_kqv")["zoë"]["handed_in_as"] == "Zoë_1/a.ipynb"


@saved
def test_extensions_survive_a_spreadsheet(tmp_path, save):
    table = "student,assignment,days\r\nzoë,05_kqv,2\r\n\r\n"
    (tmp_path / "extensions.csv").write_bytes(save(table))
    assert read_extensions(tmp_path) == {("zoë", "05_kqv"): ExtensionDays(2)}


def test_days_may_have_a_decimal_comma(tmp_path):
    (tmp_path / "extensions.csv").write_text("student;assignment;days\nada;05_kqv;1,5\n")
    assert read_extensions(tmp_path) == {("ada", "05_kqv"): ExtensionDays(1.5)}


@saved
def test_both_rosters_are_read_however_they_were_saved(tmp_path, save):
    path = tmp_path / "class.csv"
    path.write_bytes(save("Student,ID,SIS Login ID,Section,05_kqv (7)\r\nZoë,12,zoë,,\r\n"))
    assert read_canvas(path).students == [["Zoë", "12", "zoë", "", ""]]
    assert [member.id for member in read_roster(path)] == ["zoë"]


@saved
def test_a_removed_cells_points_join_an_open_table(tmp_path, save):
    path = tmp_path / "removed_cells.csv"
    path.write_bytes(save("student,cell,manual_score,extra_credit,comment\r\nzoë,a,1,0,\r\n"))
    rows = rows_in(append_rows(path, [("ada", "b", 2.0, 0.0, None)]))
    assert [row[:3] for row in rows[1:]] == [["zoë", "a", "1"], ["ada", "b", "2"]]


@pytest.mark.parametrize("read", [read_roster, read_canvas])
@pytest.mark.parametrize(
    ("content", "said"),
    [(TOO_LONG.encode(), "no table of comma-separated"), (b"PK\x03\x04\x00", "save it as CSV")],
)
def test_what_is_no_table_is_told_in_a_line(tmp_path, read, content, said):
    path = tmp_path / "class.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=said):
        read(path)


def test_another_table_is_not_taken_for_an_empty_record(tmp_path):
    place = record_path(tmp_path, "05_kqv")
    place.parent.mkdir(parents=True)
    place.write_text("name,points\nada,3\n")
    with pytest.raises(UserError, match="move it away, and collect again"):
        read_record(tmp_path, "05_kqv")
