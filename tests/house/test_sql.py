"""A SQL section opens with its promise, asks our clock, and fences what it writes."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from retoma.db.statements import sections
from tests.house.files import SOURCE
from tests.house.sections import list_sections

DIALECTS = ("sqlite", "postgres")

COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
LITERAL = re.compile(r"'(?:[^']|'')*'")
OUR_TIME = re.compile(r"\(\s*SELECT\s+clock\(\)\s*\)", re.IGNORECASE)
BARE_CLOCK = re.compile(r"\bclock\s*\(\s*\)", re.IGNORECASE)
OTHER_TIME = re.compile(
    r"\b(?:now|clock_timestamp|statement_timestamp|transaction_timestamp|unixepoch|julianday)\s*\("
    r"|\b(?:current_timestamp|current_date|current_time|localtimestamp)\b",
    re.IGNORECASE,
)
CHANCE = re.compile(r"\b(?:random|randomblob|gen_random_uuid)\s*\(", re.IGNORECASE)
CAST = re.compile(r"::")
# jsonb_each only reads, and text comes out.
JSONB = re.compile(r"jsonb(?!_each\b)", re.IGNORECASE)
JOB_WRITE = re.compile(
    r"\b(?:UPDATE|DELETE\s+FROM|MERGE\s+INTO)\s+(?:ONLY\s+)?(?:retoma\.)?jobs\b", re.IGNORECASE
)
EPOCH = re.compile(r"\bepoch\b", re.IGNORECASE)
BOOT = re.compile(r":boot\b")
STATE_SEEN = re.compile(
    r"(?:\bWHERE|\bAND|\bOR|\bON|\()\s*(?:\w+\.)?state\s*(?:=|<>|IN\b)", re.IGNORECASE
)
RUNNING_INDEX = re.compile(
    r"CREATE\s+(?:UNIQUE\s+)?INDEX[^;]*WHERE[^;]*\bstate\s*=\s*'running'", re.IGNORECASE
)


def bare(text: str) -> str:
    """The statements alone: no comments, no quoted text."""
    return LITERAL.sub("''", COMMENT.sub("", text))


def statement_problems(text: str, *, twin: bool) -> Iterator[str]:
    """Yield what is wrong with a section."""
    yield from promise_problems(text)
    if twin and not second_line(text).startswith("-- Twin: "):
        yield "line two does not give the reason for a twin (-- Twin: …)"
    sql = bare(text)
    if BARE_CLOCK.search(OUR_TIME.sub("", sql)):
        yield "clock() outside (SELECT clock()): no index is used"
    if OTHER_TIME.search(sql) or re.search(r"'now'", COMMENT.sub("", text)):
        yield "a time that is not clock()'s"
    if CHANCE.search(sql):
        yield "chance inside SQL: it is passed in"
    yield from spelling_problems(sql)
    if JOB_WRITE.search(sql):
        yield from fence_problems(text, sql)


def migration_problems(text: str) -> Iterator[str]:
    """What is wrong with a migration. It defines clock(), so it may name what others may not."""
    yield from promise_problems(text)
    yield from spelling_problems(bare(text))
    if RUNNING_INDEX.search(COMMENT.sub("", text)):
        yield "an index on state = 'running': every fence would read it from end to end"


def promise_problems(text: str) -> Iterator[str]:
    if not re.match(r"-- \S.*\.$", text.split("\n", 1)[0]):
        yield "line one is not its promise (-- A sentence.)"


def spelling_problems(sql: str) -> Iterator[str]:
    if CAST.search(sql):
        yield "x::t: the colon is the parameter mark, write CAST(x AS t)"
    if JSONB.search(sql):
        yield "jsonb changes numbers and the order of keys"


def fence_problems(text: str, sql: str) -> Iterator[str]:
    """A runner's write carries its boot and the epoch. Anybody else's compares the state it has
    seen, and says, if only in a comment, what becomes of the epoch."""
    if BOOT.search(sql):
        if not EPOCH.search(sql):
            yield "a runner writes to jobs without an epoch"
        return
    if not STATE_SEEN.search(sql):
        yield "writes to jobs with neither :boot (a runner) nor a state it compares (an operator)"
    if not EPOCH.search(text):
        yield "writes to jobs and does not say what becomes of the epoch"


def second_line(text: str) -> str:
    _, _, rest = text.partition("\n")
    return rest


def twin_problems(dialects: set[str | None]) -> Iterator[str]:
    """Yield what is wrong with a statement that is written for these databases.

    It is one section for both, or one for each, never a mixture.
    """
    for dialect in sorted(each for each in dialects if each not in (None, *DIALECTS)):
        yield f"no database is called {dialect}"
    if dialects != {None} and dialects != set(DIALECTS):
        yield "it is written neither once for both databases nor once for each"


def migrations() -> list[Path]:
    return sorted(SOURCE.rglob("migrations/*.sql"))


def named(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@pytest.mark.parametrize("section", list_sections(), ids=str)
def test_a_statement_keeps_the_rules(section):
    twin = section.dialect is not None

    assert [] == list(statement_problems(section.text, twin=twin))


@pytest.mark.parametrize("path", migrations(), ids=named)
def test_a_migration_keeps_the_rules(path):
    assert [] == list(migration_problems(path.read_text()))


def test_every_twin_has_its_twin():
    for package in {section.package for section in list_sections()}:
        wrong = {
            name: list(twin_problems({*texts})) for name, texts in sections(package).items()
        }

        assert {} == {name: problems for name, problems in wrong.items() if problems}


def test_every_sql_file_has_sections_or_is_a_migration():
    with_sections = {section.path for section in list_sections()}

    assert sorted([*with_sections, *migrations()]) == sorted(SOURCE.rglob("*.sql"))


def test_nothing_stands_before_the_first_section_of_a_file():
    for path in {section.path for section in list_sections()}:
        assert path.read_text(encoding="utf-8").startswith("-- name: "), path


GOOD = """-- Give a job back. Touches nothing whose runner or epoch has passed.
-- Twin: only one of them has arrays.
UPDATE jobs SET state = 'waiting', run_at = (SELECT clock())  -- not clock(): it is volatile
WHERE id = :id AND epoch = :epoch AND (SELECT state FROM runners WHERE boot = :boot) = 'alive';
"""


def test_a_good_statement_passes():
    assert [] == list(statement_problems(GOOD, twin=True))


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("-- Give a job back.", "UPDATE jobs -- Give a job back."),
        ("passed.\n", "passed\n"),
        ("-- Twin: only one of them has arrays.\n", ""),
        ("(SELECT clock())", "clock()"),
        ("(SELECT clock())", "now()"),
        ("(SELECT clock())", "CURRENT_TIMESTAMP"),
        ("(SELECT clock())", "datetime('now')"),
        (":id", ":id::bigint"),
        (":id", "CAST(:rows AS jsonb)"),
        (":id", "random()"),
        ("AND epoch = :epoch", "/* epoch */"),
        ("AND (SELECT state FROM runners WHERE boot = :boot) = 'alive'", ""),
    ],
)
def test_a_bad_statement_is_seen(said, instead):
    bad = GOOD.replace(said, instead)

    assert GOOD != bad
    assert [] != list(statement_problems(bad, twin=True))


def test_an_operators_write_compares_the_state_it_has_seen_and_speaks_of_the_epoch():
    promise = "-- Cancel a job nobody holds; its epoch stays.\n"
    write = "UPDATE jobs SET state = 'canceled' WHERE id = :id"

    assert [] == list(statement_problems(f"{promise}{write} AND state = :was", twin=False))
    assert [] != list(statement_problems(f"{promise}{write}", twin=False))
    assert [] != list(statement_problems(f"-- Cancel.\n{write} AND state = :was", twin=False))


def test_a_comment_is_no_fence_for_a_runner():
    write = (
        "UPDATE jobs SET seq = 1 WHERE (SELECT state FROM runners WHERE boot = :boot) = 'alive'"
    )

    assert [] != list(statement_problems(f"-- Its epoch stays.\n{write}", twin=False))
    assert [] == list(statement_problems(f"-- Save.\n{write} AND epoch = :epoch", twin=False))


@pytest.mark.parametrize(
    "planted",
    [
        "CREATE TABLE jobs (id bigint);",
        "-- Jobs.\nCREATE TABLE jobs (payload jsonb);",
        "-- Jobs.\nCREATE INDEX held ON jobs (runner) WHERE state = 'running';",
        "-- Jobs.\nCREATE VIEW j AS SELECT id::text FROM jobs;",
    ],
)
def test_a_bad_migration_is_seen(planted):
    assert [] != list(migration_problems(planted))


@pytest.mark.parametrize(
    "dialects",
    [{"sqlite"}, {None, "sqlite", "postgres"}, {"sqlite", "postgres", "oracle"}],
)
def test_a_missing_or_strange_twin_is_seen(dialects):
    assert [] != list(twin_problems(dialects))


def test_a_pair_and_a_portable_section_are_fine():
    assert [] == [*twin_problems({None}), *twin_problems({"sqlite", "postgres"})]
