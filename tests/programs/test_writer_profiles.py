"""Profiles: made by looking at a table, kept in the writer's own database, their secrets shown nowhere."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from retoma import db
from retoma.cli.writer import add, check, list_, remove
from retoma.console.exits import Stop
from retoma.db import migrations, quoted, verbatim
from retoma.db.database import Unfit
from retoma.engine.rules.errors import BadInput, NotFound
from retoma.programs.writer import Wanted
from retoma.programs.writer.introspect import look
from retoma.programs.writer.model import Family, origin_of
from retoma.programs.writer.store import ROOM
from tests.programs.writers import with_table

SECRET = "CANARY-header-of-a-source"  # noqa: S105 — of a test


async def test_a_table_is_looked_at(database_url):
    target = await with_table(database_url)
    try:
        columns = await look(target, "public", "ads", "id")

        assert [
            ("id", Family.TEXT),
            ("title", Family.TEXT),
            ("n", Family.INTEGER),
            ("price", Family.NUMBER),
            ("active", Family.BOOLEAN),
            ("seen_at", Family.INSTANT),
            ("more", Family.JSON),
            ("made_at", Family.TEXT),
        ] == [(each.name, each.family) for each in columns]
        needed = {each.name for each in columns if each.needed}
        assert {"title"} == needed - {"id"}
        assert 50 == columns[1].most
        for table, key in (("nothing", "id"), ("ads", "colour"), ("ads", "title")):
            with pytest.raises(BadInput):
                await look(target, "public", table, key)
    finally:
        target.close()


async def test_a_generated_column_is_not_ours_to_write(database_url):
    target = db.open(database_url)
    make = verbatim(
        "CREATE TABLE odd (id bigint PRIMARY KEY, twice bigint GENERATED ALWAYS AS (id * 2) STORED,"
        ' "a b" text, "select" text)'
    )
    try:
        await target.write(lambda tx: tx.for_caller(make), verb="make")

        columns = await look(target, "public", "odd", "id")

        assert ["id", "a b", "select"] == [each.name for each in columns]
    finally:
        target.close()


def wanted(**other: Any) -> Wanted:
    told: dict[str, Any] = {
        "name": "ads_v1",
        "table": "ads",
        "schema": "public",
        "conflict_key": "id",
        "json_path": "ads",
        "origins": ["https://storage.example.org"],
    }
    return Wanted(**{**told, **other})


@pytest.fixture
def target(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'target.db'}"

    async def make() -> None:
        (await with_table(url)).close()

    asyncio.run(make())
    return url


def test_profiles_by_the_command_line(target, tmp_path, capsys):
    own = f"sqlite:///{tmp_path / 'writer.db'}"

    add(own, True, wanted(rest="more"), target, [f"Authorization=Bearer {SECRET}"])
    made = json.loads(capsys.readouterr().out)
    list_(own, True)
    [listed] = json.loads(capsys.readouterr().out)
    list_(own, False)
    check(own, False, "ads_v1")
    shown = capsys.readouterr().out

    assert made == listed
    assert ["authorization"] == made["headers"]
    assert "ads_v1" in shown
    for each in (SECRET, "target.db"):
        assert each not in json.dumps(made) + shown
        written = b"".join(
            path.read_bytes() for path in tmp_path.glob("writer.db*") if path.is_file()
        )
        assert each.encode() not in written

    remove(own, False, "ads_v1")
    capsys.readouterr()
    list_(own, True)
    assert [] == json.loads(capsys.readouterr().out)
    with pytest.raises(NotFound):
        check(own, False, "ads_v1")


@pytest.mark.parametrize(
    "bad",
    [
        {"name": "Ads; DROP"},
        {"origins": ["https://storage.example.org/path"]},
        {"origins": ["ftp://storage.example.org"]},
        {"origins": ["https://me@storage.example.org"]},
        {"origins": []},
        {"origins": ["http://127.0.0.1:8080"]},
        {"origins": ["http://169.254.169.254"]},
        {"origins": ["https://storage.example.org", "https://[::ffff:10.0.0.1]"]},
        {"rest": "nothing"},
        {"rest": "price"},
        {"table": "nothing"},
        {"conflict_key": "title"},
        {"json_path": ""},
    ],
)
def test_what_cannot_be_a_profile_is_refused_and_not_kept(target, tmp_path, bad, capsys):
    own = f"sqlite:///{tmp_path / 'writer.db'}"

    with pytest.raises(BadInput):
        add(own, True, wanted(**bad), target, [])
    list_(own, True)
    assert [] == json.loads(capsys.readouterr().out)


def test_two_profiles_never_mean_the_same_request(target, tmp_path, capsys):
    own = f"sqlite:///{tmp_path / 'writer.db'}"
    add(own, True, wanted(), target, [])

    with pytest.raises(BadInput):
        add(own, True, wanted(name="ads_v2"), target, [])
    with pytest.raises(Stop):
        add(own, True, wanted(name="ads_v2"), target, ["no-value"])
    with pytest.raises(BadInput):
        add(own, True, wanted(), f"{target}-that-is-not-there", [])
    capsys.readouterr()


async def test_a_room_goes_up_and_down_beside_the_engine(database_url):
    database = db.open(database_url)
    try:
        await migrations.upgrade(database)
        up = await migrations.upgrade(database, room=ROOM)
        down = await migrations.downgrade(database, to=0, room=ROOM)

        assert ((1,), ()) == (up.applied, down.applied)
        assert () == (await migrations.status(database)).pending
    finally:
        database.close()


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://a.example.org/x?y", "https://a.example.org"),
        ("https://A.example.org:443/", "https://a.example.org"),
        ("http://127.0.0.1:81/x", "http://127.0.0.1:81"),
        ("http://[::1]:81/x", "http://[::1]:81"),
        ("https://a@b.org/", None),
        ("https://a.org:port/", None),
        ("//a.org", None),
        ("file:///etc/passwd", None),
        ("", None),
    ],
)
def test_an_origin_is_scheme_host_and_port(url, origin):
    assert origin == origin_of(url)


@pytest.mark.parametrize("name", ['a"b', "a b", "sel;ect", "%s", ":x"])
def test_a_name_is_quoted(name):
    assert f'"public"."{name.replace(chr(34), chr(34) * 2)}"' == quoted("public", name)


@pytest.mark.parametrize("name", ["", "a\0b", "a\nb", "x" * 64])
def test_what_can_be_no_name_is_refused(name):
    with pytest.raises(Unfit):
        quoted(name)
