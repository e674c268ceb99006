"""How documents come in: kept once by their content, called by their names; who means harm gets nothing in."""

import asyncio
import hashlib
import io
import os
import stat
import struct
import tracemalloc
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from retoma import Retoma
from retoma.apps.documents import APP
from retoma.apps.documents.clients import archives
from retoma.apps.documents.contents import AT_HAND, PIECE, SMALL_AT_HAND, Contents
from retoma.apps.documents.intake import (
    Incoming,
    Intake,
    LeftOut,
    clean_name,
    folders_of,
    read_manifest,
)
from retoma.apps.documents.sandbox import Papers, zip_of
from retoma.apps.documents.steps import TIDY
from retoma.apps.documents.store import contents as store
from retoma.db import adhoc
from retoma.engine.rules.errors import BadInput, NotFound
from retoma.outbound import Outbound
from retoma.testing import FakeClock, drain
from retoma.toolkit.tools import Tools

TRUTH = Papers(7)
SPOIL = adhoc("UPDATE document_pieces SET bytes = :bytes WHERE sha256 = :sha256")
LINK = (stat.S_IFLNK | 0o777) << 16


class Kept(Contents):
    """Where no database is looked at: what was kept, by its digest."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    async def keep(self, file: Path, sha256: str, size: int) -> None:
        content = _bytes(file)
        assert (sha256, size) == (digest(content), len(content))
        self.files[sha256] = content


def _bytes(file: Path) -> bytes:
    return file.read_bytes()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def incoming(name: str, content: bytes, codigo: str | None = None) -> Incoming:
    return Incoming(codigo or name, name, digest(content), len(content))


async def sent(content: bytes, by: int = 10_000) -> AsyncIterator[bytes]:
    for at in range(0, len(content), by):
        yield content[at : at + by]


async def endless() -> AsyncIterator[bytes]:
    for _ in range(60):
        yield b"x" * (1 << 20)


def form(files: list[tuple[str, bytes]], **fields: str) -> tuple[str, bytes]:
    parts = [(f'name="{name}"', said.encode()) for name, said in fields.items()]
    parts += [(f'name="arquivos"; filename="{name}"', said) for name, said in files]
    body = b"".join(
        b"--limite\r\nContent-Disposition: form-data; " + head.encode() + b"\r\n\r\n" + said
        + b"\r\n"
        for head, said in parts
    )  # fmt: skip
    return "multipart/form-data; boundary=limite", body + b"--limite--\r\n"


@contextmanager
def refused(words: str = "") -> Iterator[None]:
    with pytest.raises(BadInput) as met:
        yield
    assert words in str(met.value)


def packed(change: Callable[[zipfile.ZipFile], None]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        change(archive)
    return file.getvalue()


# — one by one, and many —


async def test_a_file_is_called_by_its_name_and_kept_by_its_content():
    kept = Kept()
    paper = TRUTH.make(3)

    taken = await Intake(kept).file(paper.name, sent(paper.content, 100))

    assert (incoming(paper.name, paper.content),) == taken.incoming
    assert {digest(paper.content): paper.content} == kept.files


async def test_many_files_come_in_one_form_with_what_it_says_besides():
    kept = Kept()
    papers = [TRUTH.make(n) for n in range(9)]
    media, body = form([(each.name, each.content) for each in papers], projeto="7", nome="é")

    for by in (1, 97, len(body)):
        taken = await Intake(kept).form(media, sent(body, by))
        assert [incoming(each.name, each.content) for each in papers] == list(taken.incoming)
        assert {"projeto": "7", "nome": "é"} == taken.fields

    assert 9 == len(kept.files)


async def test_a_file_without_bytes_comes_in_and_is_explained_later():
    taken = await Intake(Kept()).file("vazio.pdf", sent(b""))

    assert (incoming("vazio.pdf", b""),) == taken.incoming


async def test_a_file_larger_than_agreed_is_left_out_and_its_neighbours_are_not():
    kept = Kept()
    whole = b"x" * (50 << 20)

    async def body() -> AsyncIterator[bytes]:
        _, parts = form([("a.txt", b"um"), ("grande.txt", b"@"), ("b.txt", b"dois")])
        before, after = parts.split(b"@")
        yield before
        async for piece in endless():
            yield piece
        yield after

    taken = await Intake(kept).form("multipart/form-data; boundary=limite", body())

    assert ["a.txt", "b.txt"] == [each.codigo for each in taken.incoming]
    assert (LeftOut("grande.txt", "too_large"),) == taken.left_out
    assert 2 == len(kept.files)
    exact = await Intake(kept).file("exato.txt", sent(whole, 1 << 20))
    assert len(whole) == exact.incoming[0].size


@pytest.mark.parametrize(
    ("media", "body"),
    [
        ("text/plain", b"x"),
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=limite", b"nothing of that kind"),
        (*form([]),),
        (form([("a", b"x")])[0], form([("a", b"x")])[1][:-20]),
        (form([("a", b"x")])[0], form([("a", b"x")])[1].replace(b"form-data; name", b"x; nom")),
        (*form([("a", b"x"), ("a", b"y")]),),
        (*form([("..", b"x")]),),
        (*form([("\r", b"x")]),),
        (*form([("a" * 300, b"x")]),),
        (*form([("a", b"x")], campo="x" * 20_000),),
        (
            form([])[0],
            b"--limite\r\nContent-Disposition: "
            + b"x" * 99_000
            + b"\r\n\r\nx\r\n--limite--\r\n",
        ),
    ],
)
async def test_a_form_that_is_none_brings_nothing_in(media, body):
    with refused():
        await Intake(Kept()).form(media, sent(body))


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("a.pdf", "a.pdf"),
        ("../../etc/passwd", "etc/passwd"),
        ("C:\\pasta\\a.pdf", "C:/pasta/a.pdf"),
        ("pasta/ a\0\x1b[31m.pdf ", "pasta/a[31m.pdf"),
        ("a\u202efdp.exe", "afdp.exe"),
        ("a\u0301.pdf", "á.pdf"),
    ],
)
def test_a_name_is_something_to_read_and_never_a_way(raw, name):
    assert name == clean_name(raw)


def test_a_long_name_is_refused_before_it_is_looked_at():
    for raw in ("x" * 256, "\0" * 2_000 + "a", "\u0315" * 20_000 + "\u0300" * 20_000):
        with refused("characters at most"):
            clean_name(raw)


# — manifests —


async def test_a_manifest_says_what_documents_are_called():
    files = [("a.txt", b"um"), ("p/b.txt", b"dois")]
    for manifest in (
        b"codigo,arquivo\nPROC-1,a.txt\nPROC-2,p/b.txt\n",
        "\ufeffCodigo;Arquivo\r\nPROC-1;a.txt\r\n\r\nPROC-2;p\\b.txt\r\n".encode(),
    ):
        media, body = form([*files, ("manifesto.csv", manifest)])
        taken = await Intake(Kept()).form(media, sent(body))
        assert ["PROC-1", "PROC-2"] == [each.codigo for each in taken.incoming]
        assert ["a.txt", "p/b.txt"] == [each.name for each in taken.incoming]


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ("codigo,arquivo\nA,a.txt\nB,c.txt", "c.txt"),
        ("codigo,arquivo\nA,a.txt", "b.txt"),
        ("codigo,arquivo\nA,a.txt\nA,b.txt", "A"),
        ("codigo,arquivo\nA,a.txt\nB,a.txt", "a.txt"),
        ("codigo,arquivo\nA,a.txt\nB", "3"),
        ("codigo,arquivo\n,a.txt\nB,b.txt", "2"),
        ("nome,arquivo\nA,a.txt", "1"),
        ("", "1"),
    ],
)
async def test_a_manifest_and_the_files_say_the_same_or_nothing_is_taken(manifest, words):
    files = [("a.txt", b"1"), ("b.txt", b"2"), ("manifesto.csv", manifest.encode())]
    media, body = form(files)

    with refused(words):
        await Intake(Kept()).form(media, sent(body))


def test_a_manifest_is_read_as_a_spreadsheet_writes_it():
    content = "Código;Arquivo\nnº 1;ação.pdf".encode("cp1252")
    assert {"ação.pdf": "nº 1"} == read_manifest(io.BytesIO(content))


# — archives —


async def test_an_archive_brings_its_files_in_and_leaves_the_litter():
    files = {"p/a.txt": b"um", "b.txt": b"dois", "__MACOSX/p/._a.txt": b"x", "p/": b""}
    kept = Kept()

    taken = await Intake(kept).file("lote.ZIP", sent(zip_of(files)))

    assert ["p/a.txt", "b.txt"] == [each.codigo for each in taken.incoming]
    assert 2 == len(kept.files)


async def test_what_is_of_no_use_in_an_archive_is_left_out_and_named():
    def locked(archive: zipfile.ZipFile) -> None:
        archive.writestr("a.txt", b"um")
        archive.writestr("dentro.zip", zip_of({"x": b"y"}))
        archive.writestr("trancado.pdf", b"x")
        archive.filelist[-1].flag_bits |= 1
        archive.writestr("grande.pdf", b"x")
        archive.filelist[-1].file_size = 51 << 20
        archive.writestr("estranho.txt", b"x" * 100, zipfile.ZIP_BZIP2)
        archive.writestr("mentira.txt", b"x" * 1_000)
        archive.filelist[-1].CRC ^= 1

    content = packed(locked)
    kept = Kept()

    taken = await Intake(kept).file("lote.zip", sent(content))

    assert ["a.txt"] == [each.codigo for each in taken.incoming]
    assert {
        "dentro.zip": "nested",
        "grande.pdf": "too_large",
        "trancado.pdf": "encrypted",
        "estranho.txt": "unsupported",
        "mentira.txt": "corrupt",
    } == {each.name: each.code for each in taken.left_out}


def claims(size: int) -> Callable[[zipfile.ZipFile], None]:
    def change(archive: zipfile.ZipFile) -> None:
        archive.writestr("a.pdf", b"x" * 1_000)
        archive.filelist[-1].file_size = size

    return change


def swollen(archive: zipfile.ZipFile) -> None:
    for n in range(3):
        with archive.open(f"{n}.txt", "w") as file:
            for _ in range(40):
                file.write(bytes(1 << 20))


def named(*names: str) -> Callable[[zipfile.ZipFile], None]:
    def change(archive: zipfile.ZipFile) -> None:
        for name in names:
            entry = zipfile.ZipInfo("x")
            entry.filename = name
            archive.writestr(entry, b"x")

    return change


def linked(archive: zipfile.ZipFile) -> None:
    entry = zipfile.ZipInfo("a.pdf")
    entry.external_attr = LINK
    archive.writestr(entry, b"/etc/passwd")


@pytest.mark.parametrize(
    "content",
    [
        packed(claims(10 << 30)),
        packed(named("a.txt", "../../etc/cron.d/x")),
        packed(named("/etc/passwd")),
        packed(named("p\\..\\..\\x")),
        packed(named("C:\\x")),
        packed(named("")),
        packed(linked),
        packed(named()),
        b"PK\x03\x04 and nothing of an archive",
        b"",
        zip_of({"a": b"x"})[:-10],
        zip_of({"a": b"x"})[:-30] + b"PK\x05\x06" + b"\xff" * 18,
    ],
)
async def test_an_archive_that_means_harm_brings_nothing_in(content):
    kept = Kept()

    with refused():
        await Intake(kept).file("lote.zip", sent(content))

    assert {} == kept.files


async def test_an_archive_that_swells_brings_nothing_in():
    content = packed(swollen)
    assert len(content) < 1 << 20
    kept = Kept()

    with refused("would have"):
        await Intake(kept).file("lote.zip", sent(content))

    assert {} == kept.files


async def test_an_archive_that_is_broken_anyhow_is_refused_or_taken_in_part(tmp_path):
    whole = zip_of({f"p/{n}.txt": b"abc" * n for n in range(9)})
    ends = set[str]()
    for seed in range(100):
        chance = Random(seed)
        content = bytearray(whole)
        for _ in range(chance.choice((1, 3, 9))):
            content[chance.randrange(len(content))] = chance.randrange(256)
        written(tmp_path / "lote.zip", bytes(content))
        try:
            taken = await Intake(Kept()).paths([tmp_path / "lote.zip"])
        except BadInput:
            ends.add("refused")
        else:
            ends.update(each.code for each in taken.left_out)

    assert {"refused", "corrupt"} <= ends


@pytest.mark.filterwarnings("ignore:Duplicate name")
async def test_an_archive_that_names_two_files_alike_brings_nothing_in():
    kept = Kept()

    with refused("names two files alike"):
        await Intake(kept).file("lote.zip", sent(packed(named("a.txt", "a.txt"))))

    assert {} == kept.files


async def test_an_archive_claims_no_longer_list_than_is_read(tmp_path):
    file = tmp_path / "lote.zip"
    list_of_17_mib = b"PK\x05\x06" + bytes(8) + (17 << 20).to_bytes(4, "little") + bytes(6)
    written(file, bytes(18 << 20) + list_of_17_mib)

    with refused(str(archives.MOST_FILES)):
        await Intake(Kept()).paths([file])


@pytest.mark.parametrize("is_decoy", [True, False])
async def test_a_list_that_a_zip64_record_names_is_not_read_whole(tmp_path, is_decoy):
    """The end says that the list is short, or leaves it to the other record; both are believed by some."""
    file = tmp_path / "lote.zip"
    listed = 64 << 20
    with file.open("wb") as out:
        out.truncate(listed)  # not one byte of it is on the disk
        out.seek(listed)
        out.write(b"PK\x06\x06" + struct.pack("<QHHLLQQQQ", 44, 45, 45, 0, 0, 1, 1, listed, 0))
        out.write(b"PK\x06\x07" + struct.pack("<LQL", 0, listed, 1))
        size, at = (0, 0) if is_decoy else (0xFFFFFFFF, 0xFFFFFFFF)
        out.write(b"PK\x05\x06" + struct.pack("<HHHHLLH", 0, 0, 1, 1, size, at, 0))

    tracemalloc.start()
    try:
        with refused(str(archives.MOST_FILES)):
            await Intake(Kept()).paths([file])
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", [0, 1])
async def test_a_list_of_many_entries_is_refused_before_an_object_is_made_of_each(
    tmp_path, name
):
    entry = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", *[0] * 9, name, *[0] * 6)
    entry += b"x" * name
    content = entry * ((8 << 20) // len(entry))
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(content), 0, 0)
    written(tmp_path / "lote.zip", content + end)

    tracemalloc.start()
    try:
        with refused():
            await Intake(Kept()).paths([tmp_path / "lote.zip"])
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


def written(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


# — folders —


def laid_out(root: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        written(root / name, content)


async def test_a_folder_is_taken_in_with_what_lies_below_it(tmp_path):
    laid_out(tmp_path / "in", {"b.txt": b"1", "p/a.txt": b"2", ".x": b"3", "n.zip": b"PK"})
    seen: list[Incoming] = []

    taken = await Intake(Kept(), [tmp_path]).folder(str(tmp_path / "in"), seen.append)

    assert ["b.txt", "p/a.txt"] == [each.codigo for each in taken.incoming]
    assert (LeftOut("n.zip", "corrupt"),) == taken.left_out
    assert seen == list(taken.incoming)


async def test_a_folder_has_its_manifest(tmp_path):
    Papers(7).write(tmp_path / "in", 5)

    taken = await Intake(Kept(), [tmp_path]).folder(str(tmp_path / "in"))

    assert {f"DOC-{n:05d}" for n in range(5)} == {each.codigo for each in taken.incoming}


@pytest.mark.parametrize(
    "where", ["/etc", "out", "in/../out", "in/way", "nowhere", "in/a.txt", "\0"]
)
async def test_a_folder_outside_the_roots_is_not_there(tmp_path, where):
    laid_out(tmp_path, {"in/a.txt": b"1", "out/a.txt": b"2"})
    (tmp_path / "in/way").symlink_to(tmp_path / "out")
    intake = Intake(Kept(), [tmp_path / "in"])

    with refused("no such folder"):
        await intake.folder(where if where.startswith("/") else f"{tmp_path}/{where}")
    with refused("no such folder"):
        await Intake(Kept()).folder(str(tmp_path / "in"))


async def test_links_that_lead_out_and_what_is_no_file_are_left_out(tmp_path):
    laid_out(tmp_path, {"in/a.txt": b"1", "secret": b"2"})
    (tmp_path / "in/out.txt").symlink_to(tmp_path / "secret")
    (tmp_path / "in/in.txt").symlink_to(tmp_path / "in/a.txt")
    (tmp_path / "in/circle").symlink_to(tmp_path / "in")
    (tmp_path / "in/lost.txt").symlink_to(tmp_path / "in/nobody")
    os.mkfifo(tmp_path / "in/pipe.txt")
    kept = Kept()

    taken = await Intake(kept, [tmp_path / "in"]).folder(str(tmp_path / "in"))

    assert ["a.txt", "in.txt"] == [each.codigo for each in taken.incoming]
    assert {"out.txt": "link", "lost.txt": "unreadable", "pipe.txt": "unsupported"} == {
        each.name: each.code for each in taken.left_out
    }
    assert [b"1"] == list(kept.files.values())


def test_roots_are_named_by_their_whole_paths():
    assert (Path("/a"), Path("/b c")) == folders_of("/a, /b c,")
    assert () == folders_of("")
    with refused():
        folders_of("a")


# — where they lie —


@asynccontextmanager
async def house(url: str) -> AsyncIterator[tuple[Retoma, FakeClock]]:
    clock = FakeClock()
    async with Retoma(url, clock=clock) as app:
        yield app, clock


async def count(app: Retoma, table: str) -> Any:
    database = await app.database()
    [(n,)] = await database.read(lambda tx: tx.all(adhoc(f"SELECT count(*) FROM {table}")))  # noqa: S608
    return n


async def test_contents_are_kept_once_and_come_back_as_they_were(database_url, tmp_path):
    large = os.urandom(PIECE * 5 + 3)
    async with house(database_url) as (app, _):
        contents = Contents(app)
        for content in (b"", b"abc\0\xff", large, large):
            written(tmp_path / "file", content)
            await contents.keep(tmp_path / "file", digest(content), len(content))
            assert content == await contents.open(digest(content))
        async with contents.on_disk(digest(large), len(large)) as path:
            assert large == _bytes(path)
        assert not path.exists()

        assert 3 == await count(app, "document_contents")
        assert 7 == await count(app, "document_pieces")
        with pytest.raises(NotFound):
            await contents.open(digest(b"nobody"))
        await app.write(
            lambda tx: tx.run(SPOIL, bytes=b"abd\0\xff", sha256=digest(b"abc\0\xff"))
        )
        with pytest.raises(NotFound):
            await contents.open(digest(b"abc\0\xff"))


async def test_large_files_wait_for_room_on_the_disk_and_small_ones_do_not_wait_for_them(
    database_url, tmp_path
):
    async with house(database_url) as (app, _), AsyncExitStack() as stack:
        contents, small, large = Contents(app), b"small", b"x" * (PIECE + 1)
        for content in (small, large):
            written(tmp_path / "file", content)
            await contents.keep(tmp_path / "file", digest(content), len(content))

        async def lies_there(content: bytes) -> Path:
            there = contents.on_disk(digest(content), len(content))
            return await stack.enter_async_context(there)

        first = AsyncExitStack()
        await first.enter_async_context(contents.on_disk(digest(large), len(large)))
        for _ in range(AT_HAND - 1):
            await lies_there(large)
        one_more = asyncio.create_task(lies_there(large))
        for _ in range(SMALL_AT_HAND):
            assert small == _bytes(await lies_there(small))

        assert not one_more.done()
        await first.aclose()
        assert large == _bytes(await one_more)


async def test_a_content_that_came_in_half_is_not_there_until_it_comes_again(
    database_url, tmp_path
):
    content = os.urandom(PIECE * 2)
    async with house(database_url) as (app, _):
        contents, sha256 = Contents(app), digest(content)
        await app.write(lambda tx: store.begin(tx, sha256, len(content)))
        await app.write(lambda tx: store.keep(tx, sha256, 0, [content[:PIECE]]))
        assert not await app.write(lambda tx: store.end(tx, sha256))
        with pytest.raises(NotFound):
            await contents.open(sha256)
        assert set() == await app.write(lambda tx: store.want(tx, [sha256]))

        written(tmp_path / "file", content)
        await contents.keep(tmp_path / "file", sha256, len(content))

        assert content == await contents.open(sha256)
        assert {sha256} == await app.write(lambda tx: store.want(tx, [sha256, "x"]))


async def test_contents_that_no_document_names_are_dropped_a_day_later(database_url, tmp_path):
    add = adhoc(
        "INSERT INTO documents (code, name, sha256, size) VALUES ('a', 'a', :sha256, 1)"
    )
    async with house(database_url) as (app, clock):
        contents = Contents(app)
        for content in (b"named", b"wanted", b"forgotten"):
            written(tmp_path / "file", content)
            await contents.keep(tmp_path / "file", digest(content), len(content))
        await app.write(lambda tx: tx.run(add, sha256=digest(b"named")))
        assert 0 == await contents.drop_unneeded()

        clock.advance(25 * 3600)
        await app.write(lambda tx: store.want(tx, [digest(b"wanted")]))
        app.install(APP, Tools(app, Outbound()))
        await app.submit(TIDY)
        await drain(app)

        assert b"named" == await contents.open(digest(b"named"))
        assert b"wanted" == await contents.open(digest(b"wanted"))
        assert 2 == await count(app, "document_pieces")


# — names of other systems, archives in folders —


def lettered(raw: bytes, content: bytes = b"x") -> bytes:
    """An archive as a system writes it that does not say in which letters a name is."""
    there = zip_of({"n" * len(raw): content})
    return there.replace(b"n" * len(raw), raw)


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        pytest.param("petição.txt".encode("cp850"), "petição.txt", id="Windows in Brazil"),
        pytest.param(
            "Ação Nº 1/sentença.txt".encode("cp850"), "Ação Nº 1/sentença.txt", id="º"
        ),
        pytest.param("petição.txt".encode(), "petição.txt", id="UTF-8 that does not say so"),
        pytest.param(b"plain.txt", "plain.txt", id="ASCII"),
    ],
)
async def test_names_in_an_archive_are_those_that_its_maker_saw(raw, name):
    taken = await Intake(Kept()).file("a.zip", sent(lettered(raw)))

    assert [name] == [each.codigo for each in taken.incoming]


async def test_a_name_that_says_it_is_utf_8_is_taken_at_its_word():
    taken = await Intake(Kept()).file("a.zip", sent(zip_of({"petição ╬.txt": b"x"})))

    assert ["petição ╬.txt"] == [each.codigo for each in taken.incoming]


async def test_a_name_that_leads_out_in_any_letters_is_refused():
    with pytest.raises(BadInput, match="leads out"):
        await Intake(Kept()).file("a.zip", sent(lettered("../petição.txt".encode("cp850"))))


async def test_an_archive_in_a_folder_is_a_folder_and_its_folders_are_kept(tmp_path):
    """One that is broken, or means harm, is left out alone."""
    (tmp_path / "sub").mkdir()
    inside = {"x/y/fundo.txt": b"1", "raso.txt": b"2", "outro.zip": b"PK"}
    (tmp_path / "sub" / "lote.ZIP").write_bytes(zip_of(inside))
    (tmp_path / "mau.zip").write_bytes(zip_of({"../fora.txt": b"3"}))
    (tmp_path / "raso.txt").write_bytes(b"4")
    seen: list[Incoming] = []
    for taken in (
        await Intake(Kept(), [tmp_path]).folder(str(tmp_path), seen.append),
        await Intake(Kept()).paths([tmp_path]),
    ):
        assert [
            incoming("raso.txt", b"4"),
            incoming("sub/lote/raso.txt", b"2"),
            incoming("sub/lote/x/y/fundo.txt", b"1"),
        ] == sorted(taken.incoming, key=lambda each: each.codigo)
        assert {("mau.zip", "corrupt"), ("sub/lote/outro.zip", "nested")} == {
            (each.name, each.code) for each in taken.left_out
        }
    assert 3 == len(seen)
