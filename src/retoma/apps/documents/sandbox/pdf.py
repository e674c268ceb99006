"""PDF files by a small writer of our own: pages of words, pictures of pages, and what nobody can read."""

import zlib
from collections.abc import Iterable, Sequence
from random import Random
from typing import Final

A4: Final = b"[0 0 595 842]"
LINES: Final = 50  # of a page
FONT: Final = (
    b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
)
# Each form of an endless page draws the next one so often, so deep: no reader sees the end of it.
OFTEN: Final = 20
DEEP: Final = 12
IDLE: Final = 100_000  # operators that draw nothing, in the last of them
SWOLLEN: Final = 1 << 30  # bytes of a page that is a few hundred in the file
MIB: Final = 1 << 20


def pdf_of(pages: Sequence[Sequence[str]]) -> bytes:
    """Pages of lines, as any word processor prints them."""
    return _paged([_squeezed(_drawn(lines)) for lines in pages])


def repeated_pdf(count: int, lines: Sequence[str]) -> bytes:
    """So many pages, all of them the same."""
    return _paged([_squeezed(_drawn(lines))], times=count)


def paginated(lines: Sequence[str]) -> list[Sequence[str]]:
    return [lines[at : at + LINES] for at in range(0, len(lines), LINES)] or [[]]


def scanned_pdf(
    seed: str, pages: int = 2, *, stamp: str = "", typed: Sequence[str] = ()
) -> bytes:
    """Pictures of pages: there is nothing in it but dots, and a stamp below them where there is one.
    `typed`: the lines of one page more, that is none."""
    chance = Random(seed)  # noqa: S311 — a world, not a secret
    drawn = b"q 595 0 0 842 0 0 cm /Im Do Q\n" + _drawn([stamp] if stamp else [])
    return _paged(
        [*([_squeezed(drawn)] * pages), *([_squeezed(_drawn(typed))] if typed else [])],
        resources=b"<< /Font << /F1 1 0 R >> /XObject << /Im %d 0 R >> >>",
        more=[_picture(chance)],
    )


def encrypted_pdf(seed: str, lines: Sequence[str]) -> bytes:
    """Under a password that nobody has."""
    chance = Random(seed)  # noqa: S311 — a world, not a secret
    lock = (
        b"<< /Filter /Standard /V 1 /R 2 /P -4 /O <"
        + chance.randbytes(32).hex().encode()
        + b"> /U <"
        + chance.randbytes(32).hex().encode()
        + b"> >>"
    )
    return _paged([_squeezed(_drawn(lines))], more=[lock], lock=True, id_=chance.randbytes(16))


def corrupt_pdf(lines: Sequence[str]) -> bytes:
    """The first part of a file whose end never came: what says where its pages are is lost."""
    whole = pdf_of([lines])
    return whole[: whole.index(b"/Type /Page") - 8]


def endless_pdf(seed: str) -> bytes:
    """One page that draws a form that draws a form: a reader is at it for ever."""
    drawn = b"q /Fm Do Q\n" * OFTEN
    forms = [
        b"<< /Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources"
        b" << /XObject << /Fm %d 0 R >> >> /Length %d >>\nstream\n%sendstream"
        % (level + 2, len(drawn), drawn)
        for level in range(2, 2 + DEEP)
    ]
    # Long and of nothing: what a reader keeps of each form must not fill its memory before its time is over.
    last = zlib.compress(b"q Q\n" * IDLE + _drawn([f"fim {seed}"]))
    words = b"<< /Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources << /Font << /F1 %s >> >>"
    squeezed = b" /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream" % (len(last), last)
    forms.append(words % FONT + squeezed)
    page = b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn)
    return _paged([page], resources=b"<< /XObject << /Fm %d 0 R >> >>", more=forms)


def swollen_pdf(seed: str) -> bytes:
    """A page that is a gigabyte once it is unpacked: PDFium ends its process where memory ends."""
    twice = zlib.compress(_swollen(seed), 9)
    return _paged(
        [
            b"<< /Filter [/FlateDecode /FlateDecode] /Length %d >>\nstream\n%s\nendstream"
            % (len(twice), twice)
        ]
    )


def _swollen(seed: str) -> bytes:
    """The same block over and over; its checksum is wrong, which nobody lives to see."""
    words = b"BT /F1 9 Tf (x) Tj ET "
    squeeze = zlib.compressobj(9)
    head = squeeze.compress(_drawn([seed])) + squeeze.flush(zlib.Z_FULL_FLUSH)
    block = squeeze.compress(words * (MIB // len(words))) + squeeze.flush(zlib.Z_FULL_FLUSH)
    return head + block * (SWOLLEN // MIB) + squeeze.flush()


# — pages —


def _drawn(lines: Iterable[str]) -> bytes:
    shown = b"".join(b"(%s) Tj T*\n" % _escaped(line) for line in lines)
    return b"BT /F1 9 Tf 50 800 Td 14 TL\n%sET" % shown


def _escaped(line: str) -> bytes:
    plain = line.encode("cp1252", "replace")
    return plain.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def _squeezed(content: bytes) -> bytes:
    data = zlib.compress(content)
    return b"<< /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream" % (len(data), data)


def _picture(chance: Random) -> bytes:
    wide, high = 124, 175
    rows = [bytes([255 if chance.random() < 0.8 else 40] * wide) for _ in range(high)]
    data = zlib.compress(b"".join(rows))
    return (
        b"<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray"
        b" /BitsPerComponent 8 /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream"
    ) % (wide, high, len(data), data)


# — the file —


def _paged(
    contents: Sequence[bytes],
    *,
    resources: bytes = b"<< /Font << /F1 %d 0 R >> >>",
    more: Sequence[bytes] = (),
    lock: bool = False,
    id_: bytes = b"",
    times: int = 1,
) -> bytes:
    """Objects 1 and 2 are the font and what else is used, from 2 on; contents and pages follow."""
    objects = [FONT, *more]
    used = resources % (2 if b"XObject" in resources else 1)
    tree = len(objects) + (1 + times) * len(contents) + 1
    pages = []
    for content in contents:
        objects.append(content)
        pages.append(
            b"<< /Type /Page /Parent %d 0 R /MediaBox %s /Resources %s /Contents %d 0 R >>"
            % (tree, A4, used, len(objects))
        )
    pages *= times
    first = len(objects) + 1
    kids = b" ".join(b"%d 0 R" % (first + n) for n in range(len(pages)))
    objects += [*pages, b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(pages))]
    objects.append(b"<< /Type /Catalog /Pages %d 0 R >>" % tree)
    end = b" /Encrypt 2 0 R /ID [<%s> <%s>]" % ((id_.hex().encode(),) * 2) if lock else b""
    return _written(objects, end)


def _written(objects: Sequence[bytes], end: bytes) -> bytes:
    file = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    places = []
    for number, content in enumerate(objects, start=1):
        places.append(len(file))
        file += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = len(file)
    file += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    file += b"".join(b"%010d 00000 n \n" % place for place in places)
    file += b"trailer\n<< /Size %d /Root %d 0 R%s >>\n" % (
        len(objects) + 1,
        len(objects),
        end,
    )
    return bytes(file + b"startxref\n%d\n%%%%EOF\n" % table)
