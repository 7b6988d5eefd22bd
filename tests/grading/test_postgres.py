"""A real PostgreSQL server holds the gradebook as SQLite does."""

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
    """The folder with the newest server's programs."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: float(p.parts[-3])
    )
    path = str(found[-1]) if found else shutil.which("initdb")
    return Path(path).parent if path else None


@dataclass(frozen=True)
class PostgresServer:
    port: int

    def url(self, database: str, password: str = ESCAPED, user: str = "ada") -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of our own, on the loopback, with a password; it ends with the tests."""
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
        prefix = ["setpriv", f"--reuid={owner}", f"--regid={gid(owner)}", "--clear-groups"]
        data, prefix = f"{folder}/data", prefix if owner else []

        def do(program: str, *arguments: str) -> None:
            done = subprocess.run(
                [*prefix, str(binaries / program), *arguments],
                capture_output=True,
                text=True,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                timeout=120,
            )
            assert done.returncode == 0, done.stdout + done.stderr

        do("initdb", "-D", data, "-U", "ada", "-E", "UTF8", "--locale=C", "--no-sync",
           "--auth=scram-sha-256", f"--pwfile={folder}/password")  # fmt: skip
        for last in (False, False, True):  # somebody may take the port just now
            port = free_port()
            settings = f"-p {port} -c listen_addresses=127.0.0.1 -k {folder} -c fsync=off"
            start = "-w", "-t", "60", "-l", f"{folder}/log", "-o", settings, "start"
            with nullcontext() if last else suppress(AssertionError):
                do("pg_ctl", "-D", data, *start)
                break
        try:
            yield PostgresServer(port)
        finally:
            do("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")


def server_user() -> str:
    """Whom the server runs as: it refuses to run as root."""
    if os.geteuid() != 0:
        return ""
    known = {entry.pw_name for entry in pwd.getpwall()}
    if shutil.which("setpriv") is None or not known & {"postgres", "nobody"}:
        pytest.skip("as root, the PostgreSQL server needs setpriv and a user postgres or nobody")
    return "postgres" if "postgres" in known else "nobody"


def gid(user: str) -> int:
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


def held(course: Path, db: str) -> dict[str, list]:
    """All that a gradebook holds of submissions, without its own keys, through SQLAlchemy."""
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
    return {query: sorted(found, key=repr) for query, found in zip(queries, rows, strict=True)}


def normal(rows: dict[str, list]) -> dict[str, list]:
    """Truth values as numbers, which is how SQLite has them."""
    return {
        query: sorted((tuple(int(v) if isinstance(v, bool) else v for v in row) for row in found),
                      key=repr)
        for query, found in rows.items()
    }  # fmt: skip


def test_a_class_graded_twice_is_as_in_sqlite(server, tmp_path):
    course = make_course(
        tmp_path, ada=small(), bob=small(twice=STUB), torn=b'{"cells": [', empty=small(STUB, STUB)
    )
    hand_in(course, "Zoë Ångström", small(add=STUB))
    (course / "submitted" / "absent").mkdir()
    (course / "submitted" / "ada" / NAME / "timestamp.txt").write_text("2026-03-01 12:00:00 UTC")
    here, there = f"sqlite:///{tmp_path}/gradebook.db", new_database(server, "class")
    for number in range(2):
        for db in (here, there):
            done = run(course, ATTNCOURSE_DB=db)
            assert (done.returncode, done.stderr) == (0, ""), done
            assert PASSWORD not in done.stdout
            assert ESCAPED not in done.stdout
        assert "points are in postgresql+psycopg://ada:***@127.0.0.1" in done.stdout
        assert normal(held(course, here)) == normal(held(course, there))
        for db in (here, there):
            with open_gradebook(find_gradebook(course, db)) as gradebook:
                grade = gradebook.find_grade("points_add", NAME, NAME, "bob")
                assert grade.auto_score == 2
                assert grade.manual_score == (None, 0.5)[number]
                grade.manual_score, grade.extra_credit = 0.5, 0.25
                gradebook.db.commit()
                assert gradebook.find_submission(NAME, "bob").score == 0.5 + 0.25 + 1
        hand_in(course, "torn", small())


def test_a_servers_refusal_is_a_line_without_password(server, tmp_path):
    course = make_course(tmp_path, ada=small())
    for db, words in (
        (server.url("no_such_class"), 'database "no_such_class" does not exist'),
        (server.url("postgres", password="wr0ng"), "password authentication failed"),
        (server.url("postgres", user="eve"), "password authentication failed"),
        (f"postgresql://ada:{ESCAPED}@127.0.0.1:{free_port()}/postgres", "refused"),
        (f"postgresql://ada:{ESCAPED}@/postgres?host=/nowhere", "No such file"),
        (f"postgresql://ada:{ESCAPED}@no host/x", ""),
        (f"postgresql://ada:{ESCAPED}@127.0.0.1:port/x", ""),
    ):
        done = run(course, "--db", db)
        assert (done.returncode, done.stdout) == (2, ""), db
        assert len(done.stderr.splitlines()) == 1
        assert words in done.stderr
        for secret in (PASSWORD, ESCAPED, "wr0ng", "se/cr"):
            assert secret not in done.stderr
    assert not (course / "gradebook.db").exists()


def test_another_courses_tables_on_the_server_are_not_written(server, tmp_path):
    import psycopg

    course, db = make_course(tmp_path, ada=small()), new_database(server, "others")
    with psycopg.connect(db, autocommit=True) as connection:
        connection.execute("create table recipes (name text)")
    done = run(course, "--db", db)
    assert done.returncode == 2
    assert "holds other tables than nbgrader's" in done.stderr
    with psycopg.connect(db, autocommit=True) as connection:
        connection.execute("drop table recipes")
    with open_gradebook(find_gradebook(course, db)) as gradebook:
        gradebook.check_course("chemistry")
        gradebook.add_assignment("05_acids")
        connection = gradebook.db.connection().connection.cursor()
        connection.execute("update assignment set course_id = 'chemistry'")
        connection.execute("delete from course where id = 'attention'")
        gradebook.db.commit()
    done = run(course, "--db", db)
    assert done.returncode == 2
    assert "gradebook of another course (chemistry; this one is attention)" in done.stderr


def test_a_gradebook_moves_to_a_server_and_back(server, tmp_path):
    course, there = make_course(tmp_path, ada=small()), new_database(server, "moved")
    assert run(course).returncode == 0
    with open_gradebook(find_gradebook(course)) as gradebook:
        grade = gradebook.find_submission(NAME, "ada").notebooks[0].grades[0]
        grade.manual_score, grade.extra_credit = 0.5, 0.25
        gradebook.db.commit()
    assert copy_gradebook(course, there)["student"] == 1
    back = f"sqlite:///{tmp_path}/back.db"
    copy_gradebook(course, back, there)
    results = [class_results(course, NAME, db).by_student["ada"] for db in (None, there, back)]
    assert len({(result.score, result.manual) for result in results}) == 1
    assert len(results[0].manual) == 1
    with pytest.raises(UserError, match="is not empty") as refused:
        copy_gradebook(course, there)
    assert ESCAPED not in str(refused.value)
    assert PASSWORD not in str(refused.value)
