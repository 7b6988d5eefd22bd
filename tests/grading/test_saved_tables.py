"""Each table can be read after a person has opened and saved it in a spreadsheet."""

import pytest

from attncourse.grading.collect.roster import read_roster
from attncourse.grading.course.extensions import ExtensionDays, read_extensions
from attncourse.grading.course.folders import read_record, record_path
from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.changes import append_rows
from attncourse.grading.results.canvas import read_canvas_roster as read_canvas
from attncourse.grading.spreadsheet import rows_in

# As Excel saves: "CSV UTF-8", "CSV", "Unicode text", and the second in a country of commas.
ENCODERS = {
    "utf-8": lambda text: text.encode(),
    "with a mark": lambda text: text.encode("utf-8-sig"),
    "windows": lambda text: text.encode("cp1252"),
    "unicode text": lambda text: text.replace(",", "\t").encode("utf-16"),
    "semicolons": lambda text: text.replace(",", ";").encode("cp1252"),
    "for Excel": lambda text: f"sep=;\r\n{text.replace(',', ';')}".encode(),
}
as_spreadsheets_save = pytest.mark.parametrize("save", ENCODERS.values(), ids=ENCODERS)
TOO_LONG_TABLE = "student,ID,Section\n" + "x" * 200_000


@as_spreadsheets_save
def test_a_collection_survives_a_spreadsheet(tmp_path, save):
    path = record_path(tmp_path, "05_kqv")
    path.parent.mkdir(parents=True)
    path.write_bytes(save("student,platform,handed_in_as\r\nzoë,moodle,Zoë_1/a.ipynb\r\n"))
    assert read_record(tmp_path, "05_kqv")["zoë"]["handed_in_as"] == "Zoë_1/a.ipynb"


@as_spreadsheets_save
def test_extensions_survive_a_spreadsheet(tmp_path, save):
    table = "student,assignment,days\r\nzoë,05_kqv,2\r\n\r\n"
    (tmp_path / "extensions.csv").write_bytes(save(table))
    assert read_extensions(tmp_path) == {("zoë", "05_kqv"): ExtensionDays(2)}


def test_days_may_have_a_decimal_comma(tmp_path):
    (tmp_path / "extensions.csv").write_text("student;assignment;days\nada;05_kqv;1,5\n")
    assert read_extensions(tmp_path) == {("ada", "05_kqv"): ExtensionDays(1.5)}


@as_spreadsheets_save
def test_rosters_survive_a_spreadsheet(tmp_path, save):
    path = tmp_path / "class.csv"
    path.write_bytes(save("Student,ID,SIS Login ID,Section,05_kqv (7)\r\nZoë,12,zoë,,\r\n"))
    assert read_canvas(path).students == [["Zoë", "12", "zoë", "", ""]]
    assert [member.id for member in read_roster(path)] == ["zoë"]


@as_spreadsheets_save
def test_removed_cells_are_appended_to_a_saved_table(tmp_path, save):
    path = tmp_path / "removed_cells.csv"
    path.write_bytes(save("student,cell,manual_score,extra_credit,comment\r\nzoë,a,1,0,\r\n"))
    rows = rows_in(append_rows(path, [("ada", "b", 2.0, 0.0, None)]))
    assert [row[:3] for row in rows[1:]] == [["zoë", "a", "1"], ["ada", "b", "2"]]


@pytest.mark.parametrize("read_table", [read_roster, read_canvas])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TOO_LONG_TABLE.encode(), "no table of comma-separated"),
        (b"PK\x03\x04\x00", "save it as CSV"),
    ],
)
def test_a_file_that_is_no_table_is_refused_in_one_line(tmp_path, read_table, content, message):
    path = tmp_path / "class.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_table(path)


def test_another_table_is_not_taken_for_an_empty_record(tmp_path):
    path = record_path(tmp_path, "05_kqv")
    path.parent.mkdir(parents=True)
    path.write_text("name,points\nada,3\n")
    with pytest.raises(UserError, match="move it away, and collect again"):
        read_record(tmp_path, "05_kqv")
