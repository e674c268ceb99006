"""PDF files as offices have them: cut off, with bits flipped, locked, endless, of pictures only, with accents in their names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from retoma.apps.documents.model import CODES
from retoma.apps.documents.sandbox import Papers, pdf_of
from retoma.apps.documents.sandbox.pdf import encrypted_pdf, repeated_pdf, scanned_pdf
from retoma.engine.rules.errors import ErrorClass

PAGES: Final = 600
FLIPS: Final = 40  # bits of a file
# A damaged file may still be read, and has a label then.
OF_DAMAGE: Final = frozenset(
    {
        *(code.code for code in CODES.values() if code.error_class is ErrorClass.DATA),
        *("child_died", "timeout", "out_of_memory"),
    }
)


@dataclass(frozen=True, slots=True)
class OddPdf:
    """One file, and the code it ends with; `code` None: it has a label; `damaged`: either is well."""

    name: str
    content: bytes
    code: str | None = None
    damaged: bool = False


def odd_pdfs(n: int, seed: int = 1) -> Sequence[OddPdf]:
    """So many, of every kind in turn; no two have the same content."""
    chance = Random(seed)
    kinds = [*KINDS]
    return [KINDS[kinds[at % len(kinds)]](at, chance) for at in range(n)]


def _whole(at: int) -> bytes:
    return pdf_of([Papers().text(at)] * 3)


def _truncated(at: int, chance: Random) -> OddPdf:
    whole = _whole(at)
    return OddPdf(f"cortado {at}.pdf", whole[: chance.randrange(20, len(whole))], damaged=True)


def _flipped(at: int, chance: Random) -> OddPdf:
    content = bytearray(_whole(at))
    for _ in range(FLIPS):
        content[chance.randrange(8, len(content))] ^= 1 << chance.randrange(8)
    return OddPdf(f"virado {at}.pdf", bytes(content), damaged=True)


def _encrypted(at: int, _: Random) -> OddPdf:
    return OddPdf(f"trancado {at}.pdf", encrypted_pdf(str(at), Papers().text(at)), "encrypted")


def _many_pages(at: int, _: Random) -> OddPdf:
    return OddPdf(f"longo {at}.pdf", repeated_pdf(PAGES, Papers().text(at)))


def _pictures(at: int, _: Random) -> OddPdf:
    return OddPdf(f"imagens {at}.pdf", scanned_pdf(str(at)), "needs_ocr")


def _accents(at: int, _: Random) -> OddPdf:
    return OddPdf(f"petição nº {at} - ação «única» ção.pdf", _whole(at))


KINDS: Final[Mapping[str, Callable[[int, Random], OddPdf]]] = {
    "truncated": _truncated,
    "flipped": _flipped,
    "encrypted": _encrypted,
    "600 pages": _many_pages,
    "pictures only": _pictures,
    "accents": _accents,
}
