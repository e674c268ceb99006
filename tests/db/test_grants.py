"""Each program logs in with a role of its own: it can do all that it does, and nothing else."""

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from retoma import Context, Park, Permanent, Retoma, Retry, State
from retoma.cli.db import grant
from retoma.console.exits import Stop
from retoma.db import statement
from retoma.db.migrations import ENGINE, Room
from retoma.db.statements import sections
from retoma.engine.rules.errors import BadInput
from retoma.engine.testing import drain
from retoma.grants import TABLES, Program
from retoma.manifest import APPLICATIONS, application_of
from tests.databases import Rooms
from tests.roles import Login, drop, roles

OF_APPLICATIONS = {name: application_of(name) for name in APPLICATIONS}
ALL: Rooms = (
    ENGINE,
    *(Room(name, each.migrations) for name, each in OF_APPLICATIONS.items() if each.migrations),
)
PACKAGES = (
    "retoma.engine.store.sql",
    "retoma.engine.query.sql",
    "retoma.engine.checker.sql",
    "retoma.access.sql",
    "retoma.vault.sql",
    *(f"retoma.apps.{name}.sql" for name in APPLICATIONS),
)
MARK = re.compile(r"%\((\w+)\)s")
NEGATED = re.compile(r"-(%\(\w+\)s)")
DAY = timedelta(days=1)
AT_ONCE = Retry(attempts=1, base=0, cap=0)


@pytest.fixture
def rooms() -> Rooms:
    return ALL


@pytest.fixture
def database_url(postgres_url: str) -> str:
    """Roles are PostgreSQL's; the clock of a test moves this database's."""
    return postgres_url


@pytest.fixture
def login(postgres_url: str) -> Iterator[Login]:
    with roles(postgres_url) as made:
        yield made


@contextmanager
def connected(url: str) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def first(connection: "psycopg.Connection[tuple[object, ...]]", asked: str) -> object:
    row = connection.execute(asked).fetchone()
    assert row is not None
    return row[0]


# — every statement —


def statements() -> Iterator[tuple[str, str]]:
    """Every statement that PostgreSQL is sent, with the name of its file."""
    for package in PACKAGES:
        owner = "engine" if package.startswith("retoma.engine.") else package.split(".")[-2]
        for name in sorted(sections(package)):
            for text in statement(package, name).postgres:
                yield f"{owner}.{name}", text.sql


def refused(url: str) -> set[str]:
    """The statements that the server refuses to this role. It checks rights where it explains too."""
    found = set()
    with connected(url) as connection:
        for name, sent in statements():
            # What psycopg sends has a type; a bare parameter has none to be negated.
            text = NEGATED.sub(r"-CAST(\1 AS double precision)", sent)
            marks = [*dict.fromkeys(MARK.findall(text))]
            for place, mark in enumerate(marks, 1):
                text = text.replace(f"%({mark})s", f"${place}")
            connection.pgconn.exec_(b"DEALLOCATE ALL")
            # As it is, not as psycopg would read it: it has marks of the server's own.
            connection.pgconn.exec_(f"PREPARE p AS {text.replace('%%', '%')}".encode())
            given = f"({', '.join(['NULL'] * len(marks))})" if marks else ""
            answer = connection.pgconn.exec_(f"EXPLAIN EXECUTE p{given}".encode())
            state = answer.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
            assert state in (None, b"42501", b"25006"), (name, answer.error_message, text)
            if state is not None:
                found.add(name)
    return found


OF_RETENTION = {
    "engine.retire_alerts",
    "engine.retire_audit",
    "engine.retire_batches",
    "engine.retire_costs",
    "engine.retire_events",
    "engine.retire_jobs",
    "engine.retire_pace",
    "engine.retire_runner_totals",
    "engine.retire_runners",
    "engine.retire_ticks",
}
OF_PEOPLE = {"engine.pause", "engine.resume", "engine.set_knob", "engine.unset_knob"}


def test_the_server_runs_every_statement_but_those_of_retention(login):
    assert OF_RETENTION | {"engine.forget_reuse"} == refused(login(Program.WEB))


def test_a_runner_runs_every_statement_but_those_that_people_cause(login):
    found = refused(login(Program.RUNNER))

    # It may read the audit log, where it writes too; of who comes in it knows nothing.
    assert {name for name in found if name.startswith("access.")} == {
        name for name, _ in statements() if name.startswith("access.")
    } - {"access.find_denied"}
    assert OF_PEOPLE == {name for name in found if not name.startswith("access.")}


def test_a_reader_may_measure_and_count_and_sees_no_value(login):
    found = refused(login(Program.READER))

    measured = {name for name, _ in statements() if name.startswith("engine.meter_")}
    counted = {
        "engine.batch_pace",
        "engine.budget_spent",
        "engine.check_open",
        "engine.count_codes",
        "engine.count_jobs",
        "engine.funnel",
        "engine.health",
        "engine.list_batches",
        "engine.list_budgets",
        "engine.list_costs",
        "engine.list_limits",
        "engine.list_rates",
        "engine.list_runners",
        "engine.throughput",
    }
    assert set() == (measured | counted) & found
    shown = {
        "engine.get_job",
        "engine.list_jobs",
        "engine.load_values",
        "engine.get_evidence",
        "engine.get_answer",
        "engine.list_items",
        "vault.get_ref",
    } & {name for name, _ in statements()}
    assert shown <= found


def test_every_table_of_the_engine_says_who_may_do_what_with_it(postgres_url):
    told = psycopg.connect(postgres_url)
    with told:
        rows = told.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('retoma')"
            " AND relkind IN ('r', 'v')"
        ).fetchall()
        columns = told.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = 'retoma'"
        ).fetchall()
    assert {name for (name,) in rows} >= TABLES.keys()
    for table, rights in TABLES.items():
        assert {(table, name) for name in rights.reader.split()} <= set(columns), table


class TestOfTheEngineAlone:
    @pytest.fixture
    def rooms(self) -> Rooms:
        return (ENGINE,)

    def test_none_is_left_out(self, postgres_url):
        with connected(postgres_url) as owner:
            rows = owner.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('retoma')"
                " AND relkind IN ('r', 'v')"
            ).fetchall()
        assert {name for (name,) in rows} == TABLES.keys()


# — what is refused, by the server itself —

DEFINING = (
    "CREATE TABLE retoma.mine (id integer)",
    "CREATE TABLE public.mine (id integer)",
    "CREATE TEMP TABLE jobs (id integer)",
    "CREATE SCHEMA mine",
    "CREATE FUNCTION public.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "ALTER TABLE retoma.events DISABLE TRIGGER ALL",
    "DROP TRIGGER events_are_immutable ON retoma.events",
    "CREATE OR REPLACE FUNCTION retoma.clock() RETURNS timestamptz LANGUAGE sql AS 'SELECT now()'",
    "TRUNCATE retoma.events",
    "DROP TABLE retoma.jobs",
    "SET ROLE retoma",
    "COPY retoma.jobs TO PROGRAM 'true'",
)
HISTORY = (
    "UPDATE retoma.events SET type = 'done'",
    "DELETE FROM retoma.events",
    "UPDATE retoma.audit SET actor = 'nobody'",
    "DELETE FROM retoma.audit",
    "SELECT * FROM retoma.audit FOR UPDATE",
    "UPDATE retoma.retoma_migrations SET checksum = ''",
)
PEOPLE = tuple(
    f"TABLE retoma.{table}"
    for table in ("people", "api_keys", "sign_in_links", "sign_in_sessions")
)
VALUES = (
    "SELECT payload FROM retoma.jobs",
    "SELECT result FROM retoma.jobs",
    "SELECT reason FROM retoma.jobs",
    "SELECT note FROM retoma.jobs",
    "SELECT * FROM retoma.jobs",
    "SELECT CAST(j AS text) FROM retoma.jobs j",
    "SELECT value FROM retoma.steps",
    "SELECT bytes FROM retoma.evidence",
    "SELECT details FROM retoma.events",
    "SELECT details FROM retoma.attempts",
    "SELECT details FROM retoma.audit",
    "SELECT subject FROM retoma.audit",
    "SELECT value FROM retoma.pool_items",
    "SELECT value FROM retoma.reuse",
    "SELECT payload FROM retoma.schedules",
    "SELECT payload FROM retoma.filling_jobs",
    "SELECT answer FROM retoma.answers",
    "SELECT ref FROM retoma.secrets",
    "SELECT last4 FROM retoma.secrets",
    "SELECT url FROM retoma.ads_workers",
)


@pytest.mark.parametrize("program", Program)
def test_no_role_defines_anything_or_changes_history(login, program):
    more = {
        Program.WEB: ("SELECT retoma.retire_audit(1, now())", "DELETE FROM retoma.jobs"),
        Program.RUNNER: PEOPLE,
        Program.READER: (
            *PEOPLE,
            *VALUES,
            "SELECT retoma.retire_audit(1, now())",
            "UPDATE retoma.jobs SET priority = 9",
            "INSERT INTO retoma.meta VALUES ('a', 'b')",
        ),
    }[program]
    with connected(login(program)) as connection:
        # Who has a right to read only by default may still say otherwise.
        connection.execute("SET default_transaction_read_only = off")
        for each in (*DEFINING, *HISTORY, *more):
            with pytest.raises(InsufficientPrivilege):
                pytest.fail(f"{each}: {connection.execute(each).statusmessage}")


def test_a_session_of_a_role_is_pinned_and_bounded(login):
    wanted = {
        Program.WEB: ("2min", "off"),
        Program.RUNNER: ("10min", "off"),
        Program.READER: ("30s", "on"),
    }
    for program, (longest, reads) in wanted.items():
        with connected(login(program)) as connection:
            told = {
                name: first(connection, f"SHOW {name}")
                for name in (
                    "search_path",
                    "statement_timeout",
                    "lock_timeout",
                    "idle_in_transaction_session_timeout",
                    "default_transaction_read_only",
                )
            }
        assert ["retoma, public, pg_temp", longest, "10s", "20s", reads] == [*told.values()]


def test_a_reader_asks_where_work_stands(login, postgres_url):
    with connected(login(Program.READER)) as reader:
        found = reader.execute(
            "SELECT kind, state, count(*) FROM retoma.jobs GROUP BY kind, state"
        )
        assert [] == found.fetchall()


def test_applied_again_it_gives_the_same_and_takes_what_was_given_beside_it(
    login, postgres_url
):
    first = login(Program.READER)
    name = urlsplit(first).username
    with connected(postgres_url) as owner:
        owner.execute(f"GRANT SELECT ON retoma.secrets, retoma.jobs TO {name}")
        owner.execute(f"GRANT CREATE ON SCHEMA retoma TO {name}")

    again = login(Program.READER)

    assert first == again
    with connected(again) as reader:
        for each in ("SELECT * FROM retoma.secrets", "SELECT payload FROM retoma.jobs"):
            with pytest.raises(InsufficientPrivilege):
                reader.execute(each)
        reader.execute("SELECT id FROM retoma.jobs")


# — the verb —


def test_on_sqlite_the_verb_says_that_it_does_not_apply(sqlite_url):
    with pytest.raises(Stop, match="SQLite, which has no roles"):
        grant(sqlite_url, False, program="web", name=None, apply=False)


def test_a_program_that_is_none_is_refused(postgres_url):
    with pytest.raises(BadInput, match="--role is one of web, runner, reader, not 'root'"):
        grant(postgres_url, False, program="root", name=None, apply=False)


def test_what_is_printed_is_what_would_be_applied_and_changes_nothing(postgres_url, capsys):
    name = f"test_{secrets.token_hex(4)}"
    grant(postgres_url, False, program="runner", name=name, apply=False)

    script = capsys.readouterr().out
    with connected(postgres_url) as owner:
        asked = "SELECT count(*) FROM pg_roles WHERE rolname = %s"
        assert (0,) == owner.execute(asked, [name]).fetchone()
        assert script.startswith("BEGIN;\n")
        assert script.endswith("COMMIT;\n")
        owner.pgconn.exec_(script.encode())
        assert (1,) == owner.execute(asked, [name]).fetchone()
        owner.execute(f"SET ROLE {name}")
        with pytest.raises(InsufficientPrivilege):
            owner.execute("DELETE FROM retoma.events")
        owner.execute("RESET ROLE")
        drop(owner, name)


# — a runner at work —


def stories(url: str) -> Retoma:
    app = Retoma(url)

    @app.job(retry=AT_ONCE)
    async def work(ctx: Context, how: str) -> str | Park:
        await ctx.step("looked", noop)
        await ctx.attach("page.html", b"<p>")
        if how == "dies":
            raise Permanent("no", code="SHOP")
        parks = how == "parks" and not ctx.memory.progress
        await ctx.progress(0.5)
        return Park("ask") if parks else how

    app.schedule("each-minute", work, cron="* * * * *", payload="ticked")
    return app


async def noop() -> None: ...


async def test_a_runner_claims_settles_ticks_and_retires(login, postgres_url, test_clock):
    async with Retoma(postgres_url) as owner:
        await owner.upgrade()
    # What the test's clock reads is a table: there before rights are given.
    test_clock.jump(0.001)
    url = login(Program.RUNNER)
    async with stories(url) as app:
        await app.submit_many("work", ["done", "dies", "parks"], name="three")
        await drain(app)
        seen = await app.jobs()
        parked = [job for job in seen if job.state is State.PARKED]
        assert 1 == len(parked), [await app.events(job.id) for job in seen]
        await app.resume(parked[0].id)
        await drain(app)
        test_clock.jump(120)
        await drain(app)
        states = sorted(str(job.state) for job in await app.jobs())
        assert states.count("dead") == 1
        assert states.count("done") >= 3  # two of the batch, and what the minute submitted
        assert State.PARKED not in states

        test_clock.jump(3 * DAY.total_seconds())
        retired = await app.retention.run_once(
            done=DAY.total_seconds(), dead=DAY.total_seconds(), events=2 * DAY.total_seconds()
        )

        assert retired.jobs >= 4
        assert retired.events >= 4
    with connected(postgres_url) as owner:
        gone = (
            "SELECT count(*) FROM retoma.events WHERE job NOT IN (SELECT id FROM retoma.jobs)"
        )
        assert (0,) == owner.execute(gone).fetchone()


async def test_by_its_own_hand_a_runner_deletes_no_event_and_no_line_that_is_young(
    login, postgres_url
):
    async with stories(postgres_url) as app:
        job = await app.submit("work", "done")
        await drain(app)
    ask = "SELECT count(*) FROM retoma.retire_events('[1]', now() + interval '1 year')"
    with connected(login(Program.RUNNER)) as runner, connected(postgres_url) as owner:
        assert 0 == first(runner, ask)  # the job is there
        runner.execute("DELETE FROM retoma.jobs")
        assert 0 == first(runner, ask)  # what happened is younger than an hour
        told = "SELECT count(*) FROM retoma.retire_audit(100, now() + interval '1 year')"
        assert 0 == first(runner, told)
        assert 0 != first(owner, ask)
    assert 1 == job.id


async def test_a_server_leaves_retention_to_runners(login, postgres_url):
    async with stories(login(Program.WEB)) as app:
        await app.submit("work", "done")
        await drain(app)
    with connected(postgres_url) as owner:
        held = owner.execute("SELECT name FROM retoma.duties WHERE term > 0 ORDER BY name")
        held_by_web = {name for (name,) in held.fetchall()}
    assert "retention" not in held_by_web
    assert {"fold", "schedule", "fill", "alerts"} <= held_by_web
