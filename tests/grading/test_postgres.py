"""A real PostgreSQL server holds the same gradebook as SQLite."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from attncourse.grading.errors import UserError
from attncourse.grading.gradebook.connection import find_gradebook, open_gradebook
from attncourse.grading.gradebook.copying import copy_gradebook
from attncourse.grading.results.class_results import class_results
from helpers import forked_commands
from helpers.small_course import NAME, STUB, hand_in, make_course, small

PASSWORD = "se/cr:e@t %41"
ESCAPED = "se%2Fcr%3Ae%40t%20%2541"
pytestmark = pytest.mark.slow


def programs() -> Path | None:
    """Return the folder with the newest server's programs, None where there is none."""
    paths = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: float(p.parts[-3])
    )
    path = str(paths[-1]) if paths else shutil.which("initdb")
    return Path(path).parent if path else None


@dataclass(frozen=True)
class PostgresServer:
    port: int

    def url(self, database: str, password: str = ESCAPED, user: str = "ada") -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """Start a server on the loopback with a password; it ends with the tests."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install psycopg[binary]")
    binaries = programs()
    if binaries is None:
        pytest.skip("no PostgreSQL server is installed; on Debian: apt install postgresql")
    owner = server_user()
    with tempfile.TemporaryDirectory(prefix="attncourse-pg-", dir="/tmp") as folder:
        (Path(folder) / "password").write_text(PASSWORD)
        if owner:
            for path in (Path(folder), Path(folder) / "password"):
                shutil.chown(path, owner)
        prefix = ["setpriv", f"--reuid={owner}", f"--regid={group_id(owner)}", "--clear-groups"]
        data, prefix = f"{folder}/data", prefix if owner else []

        def run_program(program: str, *arguments: str) -> None:
            process = subprocess.run(
                [*prefix, str(binaries / program), *arguments],
                capture_output=True,
                text=True,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                timeout=120,
            )
            assert process.returncode == 0, process.stdout + process.stderr

        run_program("initdb", "-D", data, "-U", "ada", "-E", "UTF8", "--locale=C", "--no-sync",
           "--auth=scram-sha-256", f"--pwfile={folder}/password")  # fmt: skip
        for last in (False, False, True):  # another process may take the port in between
            port = free_port()
            settings = f"-p {port} -c listen_addresses=127.0.0.1 -k {folder} -c fsync=off"
            start = "-w", "-t", "60", "-l", f"{folder}/log", "-o", settings, "start"
            with nullcontext() if last else suppress(AssertionError):
                run_program("pg_ctl", "-D", data, *start)
                break
        try:
            yield PostgresServer(port)
        finally:
            run_program("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")


def server_user() -> str:
    """Return the user that the server runs as, "" for this one; it refuses to run as root."""
    if os.geteuid() != 0:
        return ""
    user_names = {entry.pw_name for entry in pwd.getpwall()}
    if shutil.which("setpriv") is None or not user_names & {"postgres", "nobody"}:
        pytest.skip("as root, the PostgreSQL server needs setpriv and a user postgres or nobody")
    return "postgres" if "postgres" in user_names else "nobody"


def group_id(user: str) -> int:
    return pwd.getpwnam(user).pw_gid if user else os.getegid()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def new_database(server: PostgresServer, name: str, **options: str) -> str:
    import psycopg

    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(f"create database {name}")
    return server.url(name)


def run(course: Path, *options: str, **more: str) -> subprocess.CompletedProcess:
    return forked_commands.run("grade", NAME, *options, cwd=course, **more)


def gradebook_rows(course: Path, db: str) -> dict[str, list]:
    """Return all that a gradebook holds of submissions, without its own keys."""
    from sqlalchemy import text

    where = (
        "from {0} g join submitted_notebook n on n.id = g.notebook_id "
        "join base_cell c on c.id = g.cell_id join submitted_assignment s on s.id = n.assignment_id"
    )
    queries = (
        "select id from student",
        "select id from course where id <> 'default_course'",
        "select student_id, extension from submitted_assignment",
        "select count(*), count(timestamp) from submitted_assignment",
        "select s.student_id, c.name, g.auto_score, g.manual_score, g.extra_credit, "
        "g.needs_manual_grade " + where.format("grade"),
        "select s.student_id, c.name, g.auto_comment, g.manual_comment " + where.format("comment"),
        "select cell_type, locked, source, checksum, name from source_cell",
        "select version_num from alembic_version",
    )
    with open_gradebook(find_gradebook(course, db)) as gradebook:
        rows = [[tuple(row) for row in gradebook.db.execute(text(q))] for q in queries]
    return {
        query: sorted(rows_found, key=repr) for query, rows_found in zip(queries, rows, strict=True)
    }


def with_numbers_for_booleans(rows: dict[str, list]) -> dict[str, list]:
    """Return the rows with truth values as numbers, as SQLite has them."""
    return {
        query: sorted((tuple(int(v) if isinstance(v, bool) else v for v in r) for r in found_rows),
                      key=repr)
        for query, found_rows in rows.items()
    }  # fmt: skip


def test_a_class_graded_twice_agrees_with_sqlite(server, tmp_path):
    course = make_course(
        tmp_path, ada=small(), bob=small(twice=STUB), torn=b'{"cells": [', empty=small(STUB, STUB)
    )
    hand_in(course, "Zoë Ångström", small(add=STUB))
    (course / "submitted" / "absent").mkdir()
    (course / "submitted" / "ada" / NAME / "timestamp.txt").write_text("2026-03-01 12:00:00 UTC")
    sqlite_url, postgres_url = f"sqlite:///{tmp_path}/gradebook.db", new_database(server, "class")
    for number in range(2):
        for url in (sqlite_url, postgres_url):
            process = run(course, ATTNCOURSE_DB=url)
            assert (process.returncode, process.stderr) == (0, ""), process
            assert PASSWORD not in process.stdout
            assert ESCAPED not in process.stdout
        assert "points are in postgresql+psycopg://ada:***@127.0.0.1" in process.stdout
        assert with_numbers_for_booleans(
            gradebook_rows(course, sqlite_url)
        ) == with_numbers_for_booleans(gradebook_rows(course, postgres_url))
        for url in (sqlite_url, postgres_url):
            with open_gradebook(find_gradebook(course, url)) as gradebook:
                grade = gradebook.find_grade("points_add", NAME, NAME, "bob")
                assert grade.auto_score == 2
                assert grade.manual_score == (None, 0.5)[number]
                grade.manual_score, grade.extra_credit = 0.5, 0.25
                gradebook.db.commit()
                assert gradebook.find_submission(NAME, "bob").score == 0.5 + 0.25 + 1
        hand_in(course, "torn", small())


def test_a_servers_refusal_is_a_line_without_password(server, tmp_path):
    course = make_course(tmp_path, ada=small())
    for url, message in (
        (server.url("no_such_class"), 'database "no_such_class" does not exist'),
        (server.url("postgres", password="wr0ng"), "password authentication failed"),
        (server.url("postgres", user="eve"), "password authentication failed"),
        (f"postgresql://ada:{ESCAPED}@127.0.0.1:{free_port()}/postgres", "refused"),
        (f"postgresql://ada:{ESCAPED}@/postgres?host=/nowhere", "No such file"),
        (f"postgresql://ada:{ESCAPED}@no host/x", ""),
        (f"postgresql://ada:{ESCAPED}@127.0.0.1:port/x", ""),
    ):
        process = run(course, "--db", url)
        assert (process.returncode, process.stdout) == (2, ""), url
        assert len(process.stderr.splitlines()) == 1
        assert message in process.stderr
        for secret in (PASSWORD, ESCAPED, "wr0ng", "se/cr"):
            assert secret not in process.stderr
    assert not (course / "gradebook.db").exists()


def test_another_courses_tables_on_the_server_are_not_written(server, tmp_path):
    import psycopg

    course, db = make_course(tmp_path, ada=small()), new_database(server, "others")
    with psycopg.connect(db, autocommit=True) as connection:
        connection.execute("create table recipes (name text)")
    process = run(course, "--db", db)
    assert process.returncode == 2
    assert "holds other tables than nbgrader's" in process.stderr
    with psycopg.connect(db, autocommit=True) as connection:
        connection.execute("drop table recipes")
    with open_gradebook(find_gradebook(course, db)) as gradebook:
        gradebook.check_course("chemistry")
        gradebook.add_assignment("05_acids")
        connection = gradebook.db.connection().connection.cursor()
        connection.execute("update assignment set course_id = 'chemistry'")
        connection.execute("delete from course where id = 'attention'")
        gradebook.db.commit()
    process = run(course, "--db", db)
    assert process.returncode == 2
    assert "gradebook of another course (chemistry; this one is attention)" in process.stderr


def test_a_gradebook_moves_to_a_server_and_back(server, tmp_path):
    course, postgres_url = make_course(tmp_path, ada=small()), new_database(server, "moved")
    assert run(course).returncode == 0
    with open_gradebook(find_gradebook(course)) as gradebook:
        grade = gradebook.find_submission(NAME, "ada").notebooks[0].grades[0]
        grade.manual_score, grade.extra_credit = 0.5, 0.25
        gradebook.db.commit()
    assert copy_gradebook(course, postgres_url)["student"] == 1
    sqlite_url = f"sqlite:///{tmp_path}/back.db"
    copy_gradebook(course, sqlite_url, postgres_url)
    results = [
        class_results(course, NAME, db).by_student["ada"] for db in (None, postgres_url, sqlite_url)
    ]
    assert len({(result.score, result.manual) for result in results}) == 1
    assert len(results[0].manual) == 1
    with pytest.raises(UserError, match="is not empty") as error:
        copy_gradebook(course, postgres_url)
    assert ESCAPED not in str(error.value)
    assert PASSWORD not in str(error.value)
