"""Finding the columns of a class list: by their headings in some languages, or by their cells."""

import re
from datetime import UTC

from attncourse.grading.course.dates import parse_instant
from attncourse.grading.names import name_parts

Columns = dict[str, list[int]]

# In small letters and without signs; English, German, French, Spanish, Italian, Dutch.
KNOWN_HEADS = {
    "id": "id, student id, username, sis login id, login id, login, benutzername, anmeldename, "
    "nom d utilisateur, nombre de usuario, nome utente, gebruikersnaam",
    "last_name": "last name, surname, lastname, family name, nachname, familienname, nom, "
    "nom de famille, apellido, apellidos, cognome, achternaam",
    "first_name": "first name, firstname, given name, vorname, prénom, nombre, nome, voornaam",
    "name": "name, full name, student, student name, vollständiger name, nom complet, "
    "nombre completo, nome completo, volledige naam, naam",
    "email": "email, email address, e mail, e mail address, e mail adresse, mail, courriel, "
    "adresse de courriel, correo, dirección de correo, correo electrónico, indirizzo email, "
    "e mailadres",
    "number": "lms user id, id",
    "other": "sid, id number, sis user id, integration id, id nummer, matrikelnummer, "
    "numéro d identification, número de id, número de identificación, codice identificativo",
    "participant": "identifier, kennung, identifiant, identificador, identificativo",
    "at": "timestamp, last modified submission, submitted at, submission time",
    "group": "group, groups, group name, groupname, team, gruppe, gruppen, groupe, groupes, "
    "grupo, grupos, gruppo, gruppi, groep, groepen",
}
# Of these the first that is there names the student's folder.
NUMBER_COLUMNS = ("id", "number", "other", "email")
NAME_COLUMNS = ("name", "last_name", "first_name")
MIN_ROWS_TO_TELL = 20  # cells by which a column is known
NUMBERED = re.compile(r"([^\W\d_][^\d@]*\s)\d+")  # Participant 1234567, Teilnehmer/in 1234567


def columns_of(head: list[str], rows: list[list[str]]) -> Columns:
    """Return the numbers of the columns that hold each kind of cell.

    Canvas' ID is the platform's number, and not nbgrader's id.
    """
    titles = [" ".join(name_parts(cell)) for cell in head]
    columns = {
        kind: [n for n, name in enumerate(titles) if name in known_heads.split(", ")]
        for kind, known_heads in KNOWN_HEADS.items()
    }
    counted = "id" if {"section", "sis login id"} & set(titles) else "number"
    columns[counted] = [n for n in columns[counted] if titles[n] != "id"]
    cells = {n: samples for n in range(len(head)) if (samples := first_cells(rows, n))}
    # In German worksheets the column of people's numbers is headed ID.
    if people := [n for n, samples in cells.items() if are_numbered(samples)]:
        columns = {kind: [n for n in places if n not in people] for kind, places in columns.items()}
        columns["participant"] = people[:1]
    for kind, fits in (("email", are_addresses), ("at", are_times), ("name", are_whole_names)):
        kinds = NAME_COLUMNS if kind == "name" else (kind,)
        if not any(columns[name] for name in kinds):
            columns_used = {n for places in columns.values() for n in places}
            columns[kind] = [
                n for n, samples in cells.items() if n not in columns_used and fits(samples)
            ][:1]
    return columns


def first_cells(rows: list[list[str]], n: int) -> list[str]:
    """Return the first few cells of column ``n`` that hold something."""
    texts = (row[n].strip() for row in rows if n < len(row))
    return [cell for cell in texts if cell.strip("-–")][:MIN_ROWS_TO_TELL]


def are_numbered(cells: list[str]) -> bool:
    """True if each cell is one word and a number of its own.

    So Moodle calls people whose names it hides; sections of a class share their numbers.
    """
    matches = [NUMBERED.fullmatch(cell) for cell in cells]
    distinct = len(set(cells)) == len(cells)
    return distinct and all(matches) and len({match[1] for match in matches if match}) == 1


def are_addresses(cells: list[str]) -> bool:
    """True if every cell is an e-mail address."""
    return all(re.fullmatch(r"[^@\s]+@[^@\s]+", cell) for cell in cells)


def are_times(cells: list[str]) -> bool:
    """True if every cell is a time."""
    try:
        return all(parse_instant(cell, UTC) for cell in cells)
    except ValueError:
        return False


def are_whole_names(cells: list[str]) -> bool:
    """True if the cells are people's names: words without digits, hardly one of them twice."""
    names = [cell for cell in cells if len(name_parts(cell)) > 1 and not re.search(r"\d", cell)]
    return 3 * len(names) >= 2 * len(cells) and 3 * len(set(names)) >= 2 * len(names)
