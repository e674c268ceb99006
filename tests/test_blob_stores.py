"""Shelves for evidence: what lies there, who may ask, and what an address may say."""

import asyncio
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from retoma import BadInput, blob_stores
from retoma.blob_stores import Bucket, Credentials, Folder, open_blob_store, sign_request
from retoma.engine.writing.evidence import ShelfAway
from tests.s3 import ACCESS, SECRET, serving

AT = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
KEYS = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET}
KEY = f"ab/{'ab' * 32}.0123456789ab"

# From the manual of S3, "Signature Calculations for the Authorization Header".
EXAMPLE = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
EXAMPLE_AT = datetime(2013, 5, 24, tzinfo=UTC)


@pytest.mark.parametrize(
    ("method", "path", "data", "headers", "signature"),
    [
        (
            "GET",
            "/test.txt",
            b"",
            {"Range": "bytes=0-9"},
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            "PUT",
            "/test%24file.text",
            b"Welcome to Amazon S3.",
            {
                "Date": "Fri, 24 May 2013 00:00:00 GMT",
                "x-amz-storage-class": "REDUCED_REDUNDANCY",
            },
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
    ],
)
def test_requests_are_signed_as_the_manual_of_s3_has_it(method, path, data, headers, signature):
    host = "examplebucket.s3.amazonaws.com"

    sent = sign_request(EXAMPLE, method, host, path, data, EXAMPLE_AT, headers)

    assert sent["authorization"].endswith(f",Signature={signature}")


async def test_a_bucket_gives_back_what_was_put_and_only_to_us():
    with serving() as server:
        where = f"s3://evidence/of us?endpoint={server.endpoint}"
        ours, theirs = (
            open_blob_store(where, KEYS),
            open_blob_store(where, {**KEYS, "AWS_SECRET_ACCESS_KEY": "x"}),
        )
        assert ours is not None
        assert theirs is not None
        place = f"{ours.base}{KEY}"

        await ours.put(place, b"page", AT)
        with pytest.raises(ShelfAway, match="answered 403"):
            await theirs.put(place, b"stolen", AT)

        assert {f"/evidence/of%20us/{KEY}": b"page"} == server.objects
        assert b"page" == await ours.get(place, AT)
        await ours.remove(place, AT)
        await ours.remove(place, AT)
        assert None is await ours.get(place, AT)
        for shelf in (ours, theirs):
            await shelf.close()


async def test_a_bucket_that_is_ill_is_asked_again_and_then_given_up(monkeypatch):
    monkeypatch.setattr(blob_stores, "PAUSE", 0.001)
    with serving() as server:
        shelf = open_blob_store(f"s3://evidence?endpoint={server.endpoint}", KEYS)
        assert shelf is not None

        server.ill = 2
        await shelf.put(f"{shelf.base}{KEY}", b"page", AT)
        asked = [status for *_, status in server.asked]
        server.ill = 3
        with pytest.raises(ShelfAway, match="answered 503") as away:
            await shelf.get(f"{shelf.base}{KEY}", AT)

        assert [503, 503, 200] == asked
        assert SECRET not in str(away.value)
        await shelf.close()
    with pytest.raises(ShelfAway, match="no answer"):
        await shelf.put(f"{shelf.base}{KEY}", b"page", AT)
    await shelf.close()


async def test_a_folder_gives_back_what_was_put_whole(tmp_path):
    shelf = open_blob_store(f"folder://{tmp_path}/evidence")
    assert isinstance(shelf, Folder)
    place = f"{shelf.base}{KEY}"

    await shelf.put(place, b"page", AT)
    await shelf.put(place, b"page", AT)

    files = [path for path in (tmp_path / "evidence").rglob("*") if path.is_file()]
    assert [(tmp_path / "evidence" / KEY, 0o600)] == [
        (path, path.stat().st_mode & 0o777) for path in files
    ]
    assert b"page" == await shelf.get(place, AT)
    files[0].with_name(f"{files[0].name}.x.half").write_text("somebody died")
    await shelf.remove(place, AT)
    await shelf.remove(place, AT)
    assert None is await shelf.get(place, AT)
    assert [] == [path for path in tmp_path.rglob("*") if path.is_file()]


async def test_a_folder_that_cannot_be_written_is_away(tmp_path):
    (tmp_path / "file").write_text("in the way")
    shelf = Folder(tmp_path / "file")

    with pytest.raises(ShelfAway):
        await shelf.put(f"{shelf.base}{KEY}", b"page", AT)


@pytest.mark.parametrize("key", ["../passwd", "ab/../../etc/passwd", "", "ab/xyz", f"{KEY}/x"])
async def test_a_place_leads_nowhere_but_to_its_own_shelf(tmp_path, key):
    shelf = Folder(tmp_path)

    with pytest.raises(ShelfAway, match="not in the blob store"):
        await shelf.get(f"{shelf.base}{key}", AT)
    with pytest.raises(ShelfAway, match="not in the blob store"):
        await shelf.get(f"s3://elsewhere/{KEY}", AT)


def test_the_database_setting_opens_no_blob_store():
    assert None is open_blob_store("database")


@pytest.mark.parametrize(
    ("where", "environment", "said"),
    [
        ("", KEYS, "evidence can be stored in database, folder"),
        ("ftp://host/x", KEYS, "not in 'ftp'"),
        ("folder://relative/path", KEYS, "needs an absolute path"),
        ("folder:///a/../b", KEYS, "needs an absolute path"),
        ("folder:", KEYS, "needs an absolute path"),
        ("s3://", KEYS, "a bucket name must have"),
        ("s3://UPPER/x", KEYS, "a bucket name must have"),
        ("s3://bucket?acl=public", KEYS, r"not \['acl'\]"),
        ("s3://bucket?endpoint=host:9000", KEYS, "the endpoint must be a URL"),
        ("s3://bucket", {}, "needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ("s3://bucket", {"AWS_ACCESS_KEY_ID": "x"}, "needs AWS_ACCESS_KEY_ID"),
        (f"s3://{ACCESS}:{SECRET}@bucket", KEYS, "the URL must not contain keys"),
        (f"s3://{ACCESS}:{SECRET}/bucket", KEYS, "a bucket name must have"),
        (f"s3://bucket?endpoint=http://a:{SECRET}@host", KEYS, "the URL must not contain keys"),
    ],
)
def test_an_address_that_makes_no_sense_is_refused_without_repeating_a_secret(
    where, environment, said
):
    with pytest.raises(BadInput, match=said) as refused:
        open_blob_store(where, environment)

    assert "canary" not in str(refused.value)


def test_no_text_made_of_a_shelf_shows_its_secret():
    shelf = open_blob_store("s3://bucket", KEYS | {"AWS_SESSION_TOKEN": "canary-token"})
    assert isinstance(shelf, Bucket)

    told = f"{shelf!r} {shelf.base} {shelf._credentials!r} {vars(shelf)!r}"

    assert SECRET not in told
    assert "canary-token" not in told


def test_only_who_keeps_evidence_in_s3_pays_for_a_client():
    look = "import sys, retoma.library; sys.exit('httpx2' in sys.modules)"

    assert 0 == subprocess.run([sys.executable, "-c", look], check=False).returncode


async def test_many_may_put_the_same_bytes_into_a_folder_at_once(tmp_path):
    shelf = Folder(tmp_path / "evidence")

    await asyncio.gather(*[shelf.put(f"{shelf.base}{KEY}", b"page", AT) for _ in range(20)])

    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [tmp_path / "evidence" / KEY] == files
