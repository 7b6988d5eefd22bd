"""Downloads as learning platforms make them, of a class of thirty."""

import io
import zipfile
from collections.abc import Iterable
from pathlib import Path

NAMES = """
Ada Lovelace, Alan Turing, Grace Hopper, Emmy Noether, Kurt Gödel, Sofja Kowalewskaja,
Zoë Ångström, Søren Kierkegaard, Łucja Wałęsa, José Ortega y Gasset, Nguyễn Văn An, 李 明,
Jean-Pierre Serre, Conor O’Brien, Anne-Marie Müller, Björk Guðmundsdóttir, Ana García López,
Mehmet Öztürk, Olga Tokarczuk, Paul Erdős, Chloé Dubois, Dmitri Iwanow, Fatima al-Fihri,
Giulia Bianchi, Hans Weiß, Ines Sá, Jonas Čapek, Karin Boye, Liam Ryan, Mary Jackson
"""


class Student:
    """A student of the class, with the names and numbers that each platform has."""

    def __init__(self, place: int, name: str) -> None:
        self.first, _, self.last = name.strip().rpartition(" ")
        self.id = f"s{place:02}"
        self.email = f"{self.id}@uni.example"
        self.participant = 1234500 + place
        self.canvas = 9000 + 7 * place

    @property
    def moodle(self) -> str:
        """The folder's name in Moodle's download, whose clean_filename removes some characters."""
        return f"{self.first} {self.last}_{self.participant}".replace("’", "")

    @property
    def sortable(self) -> str:
        """Canvas' sortable name in lower case, without spaces and punctuation."""
        return "".join(c for c in f"{self.last}{self.first}".lower() if c.isalnum())


CLASS = [Student(place, name) for place, name in enumerate(NAMES.split(","), start=1)]


def write_archive(path: Path, files: Iterable[tuple[str, bytes]]) -> Path:
    path.write_bytes(zip_bytes(files))
    return path


def zip_bytes(files: Iterable[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return buffer.getvalue()


def write_table(path: Path, *rows: Iterable[object]) -> Path:
    path.write_text("\n".join(",".join(f'"{cell}"' for cell in row) for row in rows) + "\n")
    return path


def moodle_path(student: Student, file: str, *, folders: bool = True) -> str:
    """Return the path of a file in Moodle's "Download all submissions"."""
    return f"{student.moodle}_assignsubmission_file{'/' if folders else '_'}{file}"


def write_worksheet(path: Path, times: dict[str, str]) -> Path:
    """Write Moodle's grading worksheet, which has times without a zone and no user names."""
    head = ("Identifier", "Full name", "ID number", "Email address")
    rows = [
        (f"Participant {s.participant}", f"{s.first} {s.last}", s.id, s.email, times.get(s.id, "-"))
        for s in CLASS
    ]
    return write_table(path, (*head, "Last modified (submission)"), *rows)


def canvas_path(student: Student, file: str, upload: int, *, late: bool = False) -> str:
    """Return the name of a file in Canvas' "Download Submissions"."""
    return f"{student.sortable}_{'LATE_' if late else ''}{student.canvas}_{upload}_{file}"


def write_canvas_roster(path: Path) -> Path:
    """Write Canvas' export of its gradebook."""
    rows = [
        (f"{s.last}, {s.first}", s.canvas, f"SIS{s.canvas}", s.id, "Section 1", "") for s in CLASS
    ]
    head = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section", "05_kqv (77)")
    about = [("", "", "", "", "", "Manual Posting"), ("    Points Possible", "", "", "", "", "43")]
    return write_table(path, head, *about, *rows)
