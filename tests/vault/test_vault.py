"""Secrets at rest: what goes in comes out only where it belongs, and shows itself nowhere (E27)."""

import asyncio
import base64
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from retoma import BadInput, IllegalMove, NotFound, Permanent, db
from retoma.db import adhoc
from retoma.db.crashpoint import Harm, Injected, crashpoint
from retoma.engine.ports import Ids
from retoma.secret import Secret
from retoma.vault import MaskedSecret, SecretRef, SecretSlot, Unreadable, Vault, parse_secret
from retoma.vault.keys import KeyFile, Keys
from tests import nursery
from tests.access.aids import everything
from tests.vault.helpers import all_of, fill, key_file, slot, vault_at

CANARY = "CANARY-7e2f9a41-vault"
ROTATION = (
    *(
        "turn_key.before_commit",
        "rotate.key_made",
        "turn_key.after_commit",
        "rotate.key_turned",
    ),
    *("seal_anew.before_commit", "seal_anew.after_commit", "rotate.sealed"),
    *("drop_keys.before_commit", "drop_keys.after_commit"),
)


def key(fill_: int) -> str:
    return base64.b64encode(bytes([fill_]) * 32).decode()


# — in and out —


async def test_what_goes_in_comes_out_and_only_its_face_is_shown(database_url):
    async with vault_at(database_url) as vault:
        await vault.put(slot(1), Secret(CANARY), actor="Ana")
        await vault.put(slot(2), Secret("short-one"), actor="Ana")

        secret = await vault.get(slot(1))

        assert secret is not None
        assert CANARY == secret.reveal()
        assert {
            "1": MaskedSecret(set=True, last4=CANARY[-4:]),
            "2": MaskedSecret(set=True, last4=None),
            "3": MaskedSecret(set=False, last4=None),
        } == await vault.masked_many("workers", "api_key", ["1", "2", "3"])
        assert await vault.get(slot(3)) is None


async def test_e27_neither_the_database_nor_the_audit_log_holds_it(database_url, home):
    async with vault_at(database_url) as vault:
        for row in range(3):
            await vault.put(slot(row), Secret(f"{CANARY}-{row}"), actor="Ana")
        await vault.rotate(actor="Ana")
        await vault.remove(slot(0), actor="Ana")

        rows = repr(await everything(vault._database))

    assert "CANARY" not in rows
    assert rows.count("secret.set") == 3
    assert "secret.removed" in rows
    if database_url.startswith("sqlite"):
        for file in home.glob("work.db*"):
            assert file.suffix == ".key" or b"CANARY" not in file.read_bytes()


async def test_the_newest_secret_of_a_place_is_its_only_one(database_url):
    async with vault_at(database_url) as vault:
        await vault.put(slot(), Secret("first-first-first"), actor="Ana")
        await vault.put(slot(), Secret("second-second-sec2"), actor="Bo")

        secret = await vault.get(slot())
        assert secret is not None
        assert "second-second-sec2" == secret.reveal()
        assert ["Bo"] == [each.set_by for each in await vault.page()]
        await vault.remove(slot(), actor="Bo")
        assert MaskedSecret(set=False) == await vault.masked(slot())
        with pytest.raises(NotFound):
            await vault.remove(slot(), actor="Bo")


async def test_a_secret_of_the_environment_or_a_file_is_read_where_it_lies(
    database_url, tmp_path, monkeypatch
):
    file = tmp_path / "mounted"
    file.write_text("CANARY-in-a-file\n")
    monkeypatch.setenv("WORKER_KEY", "CANARY-in-env")
    async with vault_at(database_url) as vault:
        await vault.put(slot(1), SecretRef.parse("env:WORKER_KEY"), actor="Ana")
        await vault.put(slot(2), SecretRef.parse(f"file:{file}"), actor="Ana")

        assert {"1": "CANARY-in-env", "2": "CANARY-in-a-file"} == await all_of(vault, "12")
        monkeypatch.setenv("WORKER_KEY", "CANARY-changed")
        assert {"1": "CANARY-changed"} == await all_of(vault, "1")
        monkeypatch.delenv("WORKER_KEY")
        with pytest.raises(Unreadable, match="WORKER_KEY"):
            await vault.get(slot(1))
        assert MaskedSecret(set=True) == await vault.masked(slot(1))
        assert "CANARY" not in repr(await everything(vault._database))


def test_what_does_not_open_parks_a_job():
    assert issubclass(Unreadable, Permanent)
    assert "config" == Unreadable("x").code


# — bound to its place —


async def test_a_sealed_secret_copied_to_another_place_does_not_open(database_url):
    places = [
        slot(2),
        slot(1, column="other"),
        slot(1, table="proxies"),
        SecretSlot("workers.api_key", "1", "1"),
    ]
    async with vault_at(database_url) as vault:
        await vault.put(slot(1), Secret(CANARY), actor="Ana")
        for each in places:
            await vault.put(each, Secret("another-another"), actor="Ana")
        [(ref,)] = await vault._database.read(
            lambda tx: tx.all(
                adhoc(
                    "SELECT ref FROM secrets"
                    " WHERE owner = 'workers' AND field = 'api_key' AND row = '1'"
                )
            )
        )
        await vault._database.write(
            lambda tx: tx.run(adhoc("UPDATE secrets SET ref = :ref"), ref=ref), verb="copy"
        )

        for each in places:
            with pytest.raises(Unreadable, match="cannot be decrypted"):
                await vault.get(each)
        assert {"1": CANARY} == await all_of(vault, "1")


async def test_a_row_copied_to_another_database_does_not_open(database_url, tmp_path):
    async with vault_at(database_url, key=Secret(key(1))) as vault:
        await vault.put(slot(), Secret(CANARY), actor="Ana")
        [(ref,)] = await vault._database.read(
            lambda tx: tx.all(adhoc("SELECT ref FROM secrets"))
        )
    async with vault_at(f"sqlite:///{tmp_path / 'other.db'}", key=Secret(key(1))) as other:
        await other.put(slot(), Secret("another-another"), actor="Ana")
        await other._database.write(
            lambda tx: tx.run(adhoc("UPDATE secrets SET ref = :ref"), ref=ref), verb="copy"
        )

        with pytest.raises(Unreadable, match="another row, column or database"):
            await other.get(slot())


@pytest.mark.parametrize("at", [30, -30, -1])
async def test_a_sealed_secret_that_was_changed_does_not_open(database_url, at):
    async with vault_at(database_url) as vault:
        await vault.put(slot(), Secret(CANARY), actor="Ana")
        [(ref,)] = await vault._database.read(
            lambda tx: tx.all(adhoc("SELECT ref FROM secrets"))
        )
        other = "A" if ref[at] != "A" else "Q"
        changed = ref[:at] + other + (ref[at + 1 :] if at != -1 else "")
        await vault._database.write(
            lambda tx: tx.run(adhoc("UPDATE secrets SET ref = :ref"), ref=changed),
            verb="change",
        )

        with pytest.raises((Unreadable, BadInput)):
            await vault.get(slot())


# — keys —


async def test_the_key_file_is_made_when_it_is_first_needed_and_is_ours_alone(
    database_url, home
):
    async with vault_at(database_url) as vault:
        await vault.put(slot(1), SecretRef.parse("env:NO_KEY_NEEDED"), actor="Ana")
        await vault.put(slot(2), Secret(CANARY), actor="Ana")

        file = key_file(vault._database, home)
        assert 0o600 == file.stat().st_mode & 0o777
        assert [] == [*file.parent.glob(".*.key.*")], "nothing is left lying about"
    async with vault_at(database_url) as again:
        assert {"2": CANARY} == await all_of(again, "2")


async def test_a_key_file_that_others_may_read_is_refused(database_url, home):
    async with vault_at(database_url) as vault:
        await vault.put(slot(), Secret(CANARY), actor="Ana")
        before = await everything(vault._database)

        for mode in (0o644, 0o640, 0o604, 0o660):
            key_file(vault._database, home).chmod(mode)
            fresh = Vault(vault._database, vault._ids)
            with pytest.raises(Unreadable, match="chmod 600"):
                await fresh.get(slot())
            with pytest.raises(Unreadable, match="chmod 600"):
                await fresh.put(slot(2), Secret("another-another"), actor="Ana")
            with pytest.raises(Unreadable, match="chmod 600"):
                await fresh.rotate(actor="Ana")

        assert before == await everything(vault._database)


async def test_two_processes_that_make_the_key_file_at_once_have_one_key(database_url, home):
    async with vault_at(database_url) as vault:
        children = [
            nursery.Born(
                [sys.executable, "-m", "tests.vault.run_vault", "put", database_url, str(n)]
            )
            for n in range(3)
        ]
        assert [0, 0, 0] == [await asyncio.to_thread(each.wait) for each in children]

        key_file(vault._database, home)
        assert {str(n): f"CANARY-of-{n}" for n in range(3)} == await all_of(vault, "012")


def test_many_that_make_one_key_file_at_once_read_the_same_key(tmp_path):
    """Without a database between them: the folder alone decides."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: KeyFile(tmp_path / "k").make(Ids()), range(40)))

    assert 1 == len({each.current for each in made})
    assert ["k"] == [each.name for each in tmp_path.iterdir()]


async def test_another_machine_makes_no_key_of_its_own(database_url, home):
    async with vault_at(database_url) as vault:
        await vault.put(slot(), Secret(CANARY), actor="Ana")
        elsewhere = Vault(vault._database, vault._ids, key_file=home / "elsewhere" / "k")

        with pytest.raises(Unreadable, match="copy it from the machine"):
            await elsewhere.put(slot(2), Secret("another-another"), actor="Ana")
        with pytest.raises(Unreadable, match="no key here"):
            await elsewhere.get(slot())
        with pytest.raises(Unreadable, match="copy it from the machine"):
            await elsewhere.rotate(actor="Ana")

        assert not (home / "elsewhere").exists()


async def test_a_key_of_the_environment_that_is_another_one_seals_nothing(database_url):
    async with vault_at(database_url, key=Secret(key(1))) as vault:
        await vault.put(slot(), Secret(CANARY), actor="Ana")
        before = await everything(vault._database)

        other = Vault(vault._database, vault._ids, key=Secret(key(2)))
        with pytest.raises(IllegalMove, match="give it the same key"):
            await other.put(slot(2), Secret("another-another"), actor="Ana")
        with pytest.raises(Unreadable, match="does not have"):
            await other.get(slot())

        assert before == await everything(vault._database)


@pytest.mark.parametrize(
    "wrong", ["x", "passphrase-of-some-kind", "A" * 43, key(1)[:-2], f"{key(1)},x", "é" * 44]
)
def test_what_is_no_key_is_refused_and_not_repeated(tmp_path, wrong):
    with pytest.raises(BadInput, match="openssl rand") as refused:
        Vault(db.open(f"sqlite:///{tmp_path / 'work.db'}"), Ids(), key=Secret(wrong))

    assert len(wrong) == 1 or wrong not in str(refused.value)


def test_keys_show_nothing_of_themselves():
    keys = Keys.of([b"k" * 32])

    assert "kkkk" not in repr(keys)


# — rotation —


async def test_rotation_seals_everything_anew_and_forgets_the_old_key(database_url, home):
    async with vault_at(database_url) as vault:
        plain = await fill(vault, 450)  # more than two bites
        await vault.put(slot("env"), SecretRef.parse("env:ANY"), actor="Ana")
        old = key_file(vault._database, home).read_text()
        before = {each.where for each in await vault.page()}

        done = await vault.rotate(actor="Ana")

        assert (450, ()) == (done.sealed, done.unreadable)
        assert plain == await all_of(vault, plain)
        assert before.isdisjoint({each.where for each in await vault.page()} - {"ANY"})
        assert old not in key_file(vault._database, home).read_text()
        fresh = Vault(vault._database, vault._ids)
        assert {"7": plain["7"]} == await all_of(fresh, "7")


async def test_a_process_that_read_the_old_key_opens_what_is_sealed_with_the_new(database_url):
    async with vault_at(database_url) as vault:
        await vault.put(slot(), Secret(CANARY), actor="Ana")
        other = Vault(vault._database, vault._ids)
        assert {"1": CANARY} == await all_of(other, "1")

        await vault.rotate(actor="Ana")

        assert {"1": CANARY} == await all_of(other, "1")
        await other.put(slot(2), Secret("another-another"), actor="Ana")
        assert {"2": "another-another"} == await all_of(vault, "2")


async def test_nothing_is_sealed_with_a_key_that_was_turned_away(database_url):
    """A sealer made before the rotation must not write what nobody could open after it."""
    async with vault_at(database_url) as vault:
        await vault.put(slot(), Secret(CANARY), actor="Ana")
        late = await vault.sealer()
        await vault.rotate(actor="Ana")
        before = await everything(vault._database)

        with pytest.raises(IllegalMove, match="just rotated"):
            await vault._database.write(
                lambda tx: late.put(tx, slot(2), Secret("another-another"), actor="Ana"),
                verb="late",
            )

        assert before == await everything(vault._database)


@pytest.mark.parametrize("point", ROTATION)
async def test_a_rotation_that_broke_off_goes_on_where_it_stopped(database_url, home, point):
    async with vault_at(database_url) as vault:
        plain = await fill(vault, 210)  # more than a bite
        crashpoint.arm(point, Harm.EXCEPTION)
        try:
            with pytest.raises(Injected):
                await vault.rotate(actor="Ana")
        finally:
            crashpoint.disarm()

        some = {row: text for row, text in plain.items() if int(row) % 30 == 0}
        after = Vault(vault._database, vault._ids)
        assert some == await all_of(after, some), "everything opens in the middle of it"
        await after.put(slot("new"), Secret("put-in-the-middle"), actor="Bo")
        done = await after.rotate(actor="Ana")

        assert () == done.unreadable
        fresh = Vault(vault._database, vault._ids)
        assert {**some, "new": "put-in-the-middle"} == await all_of(fresh, [*some, "new"])
        assert 1 == len(key_file(vault._database, home).read_text().split())
        assert [] == [*home.rglob(".*.key.*")], "nothing is left lying about"


@pytest.mark.parametrize("point", ["rotate.key_made", "seal_anew.after_commit"])
async def test_a_rotation_killed_in_the_middle_is_done_by_the_next(database_url, home, point):
    async with vault_at(database_url) as vault:
        plain = await fill(vault, 450)
        command = [sys.executable, "-m", "tests.vault.run_vault", "rotate", database_url]
        armed = {**os.environ, "RETOMA_CRASHPOINT": f"{point}=kill"}

        killed = await asyncio.to_thread(nursery.run, command, env=armed)
        assert -9 == killed.returncode
        some = {row: text for row, text in plain.items() if int(row) % 30 == 0}
        assert some == await all_of(Vault(vault._database, vault._ids), some)
        again = await asyncio.to_thread(nursery.run, command, stdout=subprocess.PIPE)

        assert 0 == again.returncode
        assert (250 if point.startswith("seal") else 450) == int(again.stdout)
        assert some == await all_of(Vault(vault._database, vault._ids), some)
        assert 1 == len(key_file(vault._database, home).read_text().split())


async def test_rotations_at_once_lose_nothing(database_url, home):
    async with vault_at(database_url) as vault:
        plain = await fill(vault, 450)

        await asyncio.gather(
            *(Vault(vault._database, vault._ids).rotate(actor="Ana") for _ in range(3)),
            *(vault.put(slot("new"), Secret("put-meanwhile-1"), actor="Bo") for _ in range(3)),
            return_exceptions=True,
        )

        fresh = Vault(vault._database, vault._ids)
        assert plain == await all_of(fresh, plain)
        assert 1 == len(key_file(vault._database, home).read_text().split())


async def test_the_environments_key_is_turned_by_whoever_sets_it(database_url):
    both = Secret(f"{key(2)},{key(1)}")
    async with vault_at(database_url, key=Secret(key(1))) as vault:
        plain = await fill(vault, 5)
        with pytest.raises(BadInput, match="put a new key before"):
            await vault.rotate(actor="Ana")

        turning = Vault(vault._database, vault._ids, key=both)
        await turning.put(slot("x"), Secret("before-rotation"), actor="Ana")
        assert 6 == (await turning.rotate(actor="Ana")).sealed

        with pytest.raises(BadInput, match="put a new key before"):
            await turning.rotate(actor="Ana")
        alone = Vault(vault._database, vault._ids, key=Secret(key(2)))
        assert plain == await all_of(alone, plain)


async def test_what_does_not_open_is_told_and_keeps_the_old_key(database_url, home):
    async with vault_at(database_url) as vault:
        await fill(vault, 3)
        await vault._database.write(
            lambda tx: tx.run(
                adhoc(
                    "UPDATE secrets SET ref ="
                    " (SELECT s.ref FROM secrets s WHERE s.row = '0') WHERE row = '1'"
                )
            ),
            verb="copy",
        )

        done = await vault.rotate(actor="Ana")

        assert (2, (slot(1),)) == (done.sealed, done.unreadable)
        assert 2 == len(key_file(vault._database, home).read_text().split())
        await vault.put(slot(1), Secret("set-anew-set-anew"), actor="Ana")
        await vault.rotate(actor="Ana")
        assert 1 == len(key_file(vault._database, home).read_text().split())


# — bad input —


@pytest.mark.parametrize(
    "wrong",
    [
        *("env:", "env:a b", "env:1A", "env:A\0", f"env:{'A' * 201}", "env:RETOMA_SECRET_KEY"),
        *(
            "env:retoma_api_key",
            "env:DATABASE_URL",
            "file:",
            "file:relative/path",
            "file:/a\0b",
        ),
        *(f"file:/{'a' * 5000}", "file:/a\nb", "enc:v1:x", "enc:", "", "\0", "a\0b", "\ud800"),
        "a" * 65_537,
    ],
)
def test_what_is_no_secret_is_refused_and_not_repeated(wrong):
    with pytest.raises(BadInput) as refused:
        parse_secret(wrong)

    assert len(wrong) < 8 or wrong not in str(refused.value)


def test_a_place_and_a_secret_are_told_apart():
    ref, plain = parse_secret("env:WORKER_KEY"), parse_secret("sk-env:not-a-place")

    assert isinstance(ref, SecretRef)
    assert "env:WORKER_KEY" == ref.text
    assert "***" == repr(ref) == str(ref) == f"{ref}"
    assert isinstance(plain, Secret)


@pytest.mark.parametrize("what", ["folder", "pipe", "big", "empty", "bytes", "missing"])
def test_a_file_that_holds_no_secret_is_told_at_once(tmp_path, what):
    path = tmp_path / "secret"
    match what:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "big":
            path.write_text("a" * 70_000)
        case "empty":
            path.write_text("\n")
        case "bytes":
            path.write_bytes(b"\xff\xfe")
        case _:
            pass

    with pytest.raises(Unreadable, match=str(path)):
        SecretRef.parse(f"file:{path}").read()


@pytest.mark.parametrize("wrong", ["", "a" * 201, "a\0", "a\nb"])
def test_a_place_is_named(wrong):
    for parts in ((wrong, "b", "c"), ("a", wrong, "c"), ("a", "b", wrong)):
        with pytest.raises(BadInput):
            SecretSlot(*parts)


async def test_the_key_lies_beside_the_file_or_in_the_data_folder(database_url, home):
    async with vault_at(database_url) as vault:
        await vault.put(slot(), Secret(CANARY), actor="Ana")
        file = key_file(vault._database, home)

    if database_url.startswith("sqlite"):
        assert Path(urlsplit(database_url).path[1:] + ".key") == file
    else:
        assert home / "home" / "retoma" == file.parent
        assert 0o700 == file.parent.stat().st_mode & 0o777
