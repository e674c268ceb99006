"""A backup has everything, is whole or not there, and is restored whole or not at all (E4, F20)."""

import fcntl
import io
import json
import secrets
import stat
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from retoma import Context, Permanent, Retoma, backup, db
from retoma.backup import Installation
from retoma.db import DatabaseError, Transaction, adhoc, migrations
from retoma.db.migrations import ENGINE, Room
from retoma.engine import store
from retoma.engine.ports import Ids
from retoma.engine.query import tail
from retoma.engine.rules import settlement
from retoma.engine.rules.errors import BadInput, IllegalMove, RetomaError
from retoma.engine.rules.states import State
from retoma.secret import Secret
from retoma.testing import Injected, crash_at
from retoma.vault import SecretSlot as Sealed
from retoma.vault import Vault
from tests.copying import beside
from tests.engine.aids import boot, claim, rows, settle, submit

QUOTES = Room("quotes", "retoma.apps.quotes.migrations")
ROOMS = {room.name: room for room in (ENGINE, QUOTES)}
HERE = Sealed("test", "word", "1")
PAGE = b"<h1>sold out</h1>" * 400


@pytest.fixture
def rooms():
    return (ENGINE, QUOTES)


@pytest.fixture
def second(database_url, tmp_path) -> Iterator[str]:
    with beside(database_url, tmp_path) as url:
        yield url


@pytest.fixture
def shelf(tmp_path) -> str:
    return f"folder://{tmp_path}/shelf"


async def test_e4_a_restored_house_has_everything_and_nobody_of_before_may_write(
    database_url, second, shelf, tmp_path
):
    key = tmp_path / "work.key"
    async with Retoma(database_url, evidence=shelf) as app:
        dead = await failed_with_a_page(app)
        database = await app.database()
        await Vault(database, Ids(), key_file=key).put(HERE, Secret("sesame"), actor="me")
        await submit(database, 3)
        me = await boot(database)
        held = [each.held for each in await claim(database, me, slots=2)]
        cursor = await database.read(tail.head)
        before = await database.read(everything)

        made = backup.back_up(Installation(database_url, shelf, key), tmp_path / "house.tar")
    key.unlink()
    lying = take_away(tmp_path / "shelf")
    reopened = restored(tmp_path / "house.tar", Installation(second, shelf, key))

    assert (1, 2) == (reopened.runners, reopened.jobs)
    assert before.keys() == {each.name for each in made.tables}
    assert {name: len(before[name]) for name in before} == {e.name: e.rows for e in made.tables}
    async with Retoma(second, evidence=shelf) as app:
        database = await app.database()
        after = await database.read(everything)
        touched = {name for name in before if before[name] != after[name]}
        assert {"audit", "events", "jobs", "meta", "runners", "tallies"} == touched
        assert before["events"] <= after["events"]
        assert lying == sorted(path.name for path in (tmp_path / "shelf").rglob("*.*"))
        [piece] = await app.evidence.list(dead)
        assert PAGE == await app.evidence.read(piece.sha256)
        assert "sesame" == (await opened(Vault(database, Ids(), key_file=key))).reveal()
        assert 0o600 == stat.S_IMODE(key.stat().st_mode)

        assert not await database.read(lambda tx: tail.knows(tx, cursor)), "a full snapshot"
        assert store.Beat.OVER is await database.write(
            lambda tx: store.beat_runner(tx, me, 60.0, reconnected=False), verb="beat"
        )
        for each in held:
            assert await settle(database, me, each, settlement.done("1")) is None
        [(actor, subject)] = await rows(
            database, "SELECT actor, subject FROM audit WHERE verb = 'database.restored'"
        )
        assert ("tester", "house.tar") == (actor, subject)
        waiting = [(job.id, job.epoch) for job in await app.jobs(state=State.WAITING)]
        assert {(each.job, each.epoch) for each in held} < set(waiting)
        # Whoever was given a job after the backup has its number: nobody else gets it.
        await submit(database)
        newest = (await app.jobs(limit=1))[0].id
        assert newest > held[-1].job + 1_000_000
        again = await claim(database, await boot(database, "new"), slots=9)
        epochs = {each.held.job: each.held.epoch for each in again}
        assert [each.epoch + 1 for each in held] == [epochs[each.job] for each in held]


async def failed_with_a_page(app: Retoma) -> int:
    @app.job
    async def read(ctx: Context, n: int) -> None:
        await ctx.attach("page.html", PAGE)
        raise Permanent("sold out")

    job = await app.submit(read, 1)
    await app.run(until_idle=True)
    return job.id


async def opened(vault: Vault) -> Secret:
    found = await vault.get(HERE)
    assert found is not None
    return found


def everything(tx: Transaction) -> dict[str, set[str]]:
    """Every row of every table of ours, as text; numbers of transactions are the server's own."""
    names = [name for (name,) in tx.all(NAMES)]
    found = {}
    for name in names:
        columns = [column for (column,) in tx.all(COLUMNS, name=name)]
        listed = ", ".join(f'"{each}"' for each in columns)
        found[name] = {repr(row) for row in tx.all(adhoc(f'SELECT {listed} FROM "{name}"'))}  # noqa: S608
    return found


def take_away(folder: Path) -> list[str]:
    names = []
    for path in sorted(folder.rglob("*.*")):
        names.append(path.name)
        path.unlink()
    return sorted(names)


def restored(file: Path, installation: Installation) -> store.Reopened:
    with backup.opened(file) as found:
        return backup.restore(
            found,
            installation,
            incarnation=Ids().new(),
            migrations_of=ROOMS.__getitem__,
            actor="tester",
        )


@pytest.fixture
def notes(tmp_path, monkeypatch) -> Room:
    """An application whose tables have grown since: two migrations."""
    # A name of its own in each test: a package is imported once in a process.
    package = tmp_path / "packages" / f"notes_{secrets.token_hex(4)}"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    for dialect in ("sqlite", "postgres"):
        for name, up, down in (
            ("0001_notes", "CREATE TABLE notes (id integer);", "DROP TABLE notes;"),
            (
                "0002_text",
                "ALTER TABLE notes ADD COLUMN said text;",
                "ALTER TABLE notes DROP COLUMN said;",
            ),
        ):
            (package / f"{name}.{dialect}.up.sql").write_text(up)
            (package / f"{name}.{dialect}.down.sql").write_text(down)
    monkeypatch.syspath_prepend(package.parent)
    return Room("notes", package.name)


async def test_a_backup_of_an_older_schema_is_brought_up_as_it_is_restored(
    database_url, second, tmp_path, notes, monkeypatch
):
    monkeypatch.setitem(ROOMS, "notes", notes)
    with closing(db.open(database_url)) as database:
        await submit(database, 2)
        await migrations.upgrade(database, to=1, room=notes)
        await database.write(
            lambda tx: tx.run(adhoc("INSERT INTO notes VALUES (7)")), verb="add"
        )
    made = backup.back_up(Installation(database_url, "database"), tmp_path / "old.tar")

    restored(tmp_path / "old.tar", Installation(second, "database"))

    assert 1 == made.about.newest("notes")
    with closing(db.open(second)) as database:
        assert () == (await migrations.status(database, notes)).pending
        assert [(7, None)] == await rows(database, "SELECT id, said FROM notes")
        assert [(2,)] == await rows(database, "SELECT count(*) FROM jobs")


# --- what is refused changes nothing


def test_a_backup_is_whole_or_not_there_and_written_over_nothing(database_url, tmp_path):
    file, part = tmp_path / "a.tar", tmp_path / "a.tar.part"
    part.write_bytes(b"of somebody who was killed" * 9)
    backup.back_up(Installation(database_url, "database"), file)
    first = file.read_bytes()

    assert 0o600 == stat.S_IMODE(file.stat().st_mode)
    with pytest.raises(IllegalMove, match="exists already"):
        backup.back_up(Installation(database_url, "database"), file)
    with pytest.raises(BadInput, match="folder does not exist"):
        backup.back_up(Installation(database_url, "database"), tmp_path / "nowhere" / "b.tar")
    with part.open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        file.rename(tmp_path / "aside.tar")
        with pytest.raises(IllegalMove, match="another process is writing"):
            backup.back_up(Installation(database_url, "database"), file)
    assert first == (tmp_path / "aside.tar").read_bytes()
    assert not file.exists()


def test_a_backup_that_fails_leaves_nothing_behind(database_url, tmp_path):
    def full(name: str, _: int) -> None:
        if name == "SHA256SUMS":
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        backup.back_up(Installation(database_url, "database"), tmp_path / "a.tar", full)

    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith("a.tar")]


Spoil = Callable[[bytes], bytes]


def flipped(raw: bytes) -> bytes:
    """One bit of one byte, in the middle of the first member."""
    return raw[:700] + bytes([raw[700] ^ 1]) + raw[701:]


def cut(raw: bytes) -> bytes:
    return raw[: len(raw) // 2 // 512 * 512]


def with_manifest(change: Callable[[dict[str, Any]], None]) -> Spoil:
    def spoil(raw: bytes) -> bytes:
        made = io.BytesIO()
        with (
            tarfile.open(fileobj=io.BytesIO(raw)) as old,
            tarfile.open(fileobj=made, mode="w") as new,
        ):
            for member in old.getmembers():
                data = old.extractfile(member).read()  # type: ignore[union-attr]
                if member.name == backup.MANIFEST:
                    told = json.loads(data)
                    change(told)
                    data = json.dumps(told).encode()
                    member.size = len(data)
                new.addfile(member, io.BytesIO(data))
        return made.getvalue()

    return spoil


def with_member(**what: Any) -> Spoil:
    def spoil(raw: bytes) -> bytes:
        made = io.BytesIO(raw)
        with tarfile.open(fileobj=made, mode="a") as tar:
            member = tarfile.TarInfo()
            for name, value in what.items():
                setattr(member, name, value)
            tar.addfile(member, io.BytesIO(b"x" * member.size))
        return made.getvalue()

    return spoil


def set_to(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda told: told.__setitem__(name, value)


def unknown_migration(told: dict[str, Any]) -> None:
    told["applied"].append({"room": "engine", "number": 9_999, "name": "tomorrow"})


REFUSED = {
    "one bit": (flipped, "damaged"),
    "half": (cut, "damaged"),
    "no tar": (lambda _: b"hello", "damaged"),
    "format": (with_manifest(set_to("format", 2)), "format 2"),
    "dialect": (with_manifest(set_to("dialect", "oracle")), "oracle"),
    "migration": (with_manifest(unknown_migration), "does not know"),
    "manifest": (with_manifest(lambda told: told.pop("tables")), "manifest"),
    "way out": (with_member(name="../../etc/passwd", size=3), "member"),
    "root": (with_member(name="/etc/passwd", size=3), "member"),
    "link": (
        with_member(name="secret.key", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        "member",
    ),
    "twice": (with_member(name="manifest.json", size=3), "member"),
}


def test_what_is_no_whole_backup_of_ours_is_refused_and_changes_nothing(
    database_url, second, tmp_path
):
    backup.back_up(Installation(database_url, "database"), tmp_path / "good.tar")
    good = (tmp_path / "good.tar").read_bytes()
    bad, key = tmp_path / "bad.tar", tmp_path / "its.key"
    for what, (spoil, why) in REFUSED.items():
        bad.write_bytes(spoil(good))
        with pytest.raises(BadInput, match=why):
            restored(bad, Installation(second, "database", key))
        assert empty(second), what
        assert not key.exists(), what

    restored(tmp_path / "good.tar", Installation(second, "database", key))
    assert not empty(second)
    with pytest.raises(DatabaseError, match="over nothing"):
        restored(tmp_path / "good.tar", Installation(second, "database", key))


def test_another_key_or_another_shelf_is_refused_before_anything_is_written(
    database_url, second, shelf, tmp_path
):
    key = tmp_path / "its.key"
    key.write_text("one")
    lying = tmp_path / "shelf" / "ab"
    lying.mkdir(parents=True)
    (lying / f"{'ab' * 32}.gz").write_bytes(b"page")
    backup.back_up(Installation(database_url, shelf, key), tmp_path / "a.tar")

    key.write_text("another")
    with pytest.raises(RetomaError, match="a different secret key"):
        restored(tmp_path / "a.tar", Installation(second, shelf, key))
    with pytest.raises(RetomaError, match="RETOMA_EVIDENCE"):
        restored(tmp_path / "a.tar", Installation(second, "database", None))

    assert empty(second)
    assert "another" == key.read_text()


def test_a_restore_that_is_broken_off_is_begun_again(database_url, second, tmp_path):
    backup.back_up(Installation(database_url, "database"), tmp_path / "a.tar")
    with crash_at("restore.before_commit"), pytest.raises(Injected, match="restore"):
        restored(tmp_path / "a.tar", Installation(second, "database"))
    assert empty(second)

    restored(tmp_path / "a.tar", Installation(second, "database"))

    assert not empty(second)


def empty(url: str) -> bool:
    if url.startswith("sqlite"):
        path = Path(url.removeprefix("sqlite:///"))
        return not list(path.parent.glob(f"{path.name}*"))
    from retoma.db.postgres import connect_apart

    with connect_apart(url) as connection:
        found = "SELECT 1 FROM pg_namespace WHERE nspname = 'retoma'"
        return connection.execute(found).fetchone() is None


NAMES = adhoc(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    "SELECT tablename FROM pg_tables WHERE schemaname = 'retoma'",
)
COLUMNS = adhoc(
    "SELECT name FROM pragma_table_info(:name)",
    "SELECT column_name FROM information_schema.columns WHERE table_schema = 'retoma'"
    " AND table_name = :name AND data_type <> 'xid8'",
)
