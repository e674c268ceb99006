"""PDF files: PDFium first, pypdf where it gives up, PyMuPDF last where somebody has installed it."""

import importlib
import importlib.util
import io
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from retoma.engine.rules.errors import Permanent
from retoma.toolkit.readers.cutting import HEAD
from retoma.toolkit.readers.ocr import MOST_PAGES as MOST_RECOGNIZED
from retoma.toolkit.readers.ocr import SIDE, Picture, Recognize, recognizer
from retoma.toolkit.readers.rules import Ocr
from retoma.words import say

MOST_PAGES: Final = 2_000  # looked at in one file, however little they say
LITTLE: Final = 400  # characters: a stamp in the margin of a page that is a picture
COVERS: Final = 0.5  # of a page, from where on a picture is the page
PASSWORD: Final = (4, 5)  # what PDFium says where it needs one, or a lock that it does not know
IMAGE: Final = 3  # FPDF_PAGEOBJ_IMAGE
DEEP: Final = 3  # forms within forms that are looked into for pictures
GAP: Final = "\n\n[… {n} páginas omitidas …]\n\n"


@dataclass(frozen=True, slots=True)
class Pages:
    """What stands on the pages that were looked at. `left_out`: how many of the middle were not."""

    text: str
    speaks: bool  # a page that is no picture says something
    pictures: bool  # a page is a picture
    count: int
    left_out: int
    by: str


@dataclass(frozen=True, slots=True)
class _Page:
    text: str
    picture: bool


Draw = Callable[[int], Picture]
# How many pages, what stands on one of them, and how it looks, where the reader can draw it.
Open = tuple[int, Callable[[int], _Page], Draw | None]


class _Recognized(ExitStack):
    """Pages, of which pictures are read where the project wants it: a few of each file."""

    def __init__(self, page: Callable[[int], _Page], drawn: Draw | None, ocr: Ocr) -> None:
        super().__init__()
        self._page = page
        self._drawn = drawn
        self._ocr = ocr
        self._recognize: Recognize | None = None
        self._left = MOST_RECOGNIZED

    def __call__(self, at: int) -> _Page:
        page = self._page(at)
        wanted = self._ocr is Ocr.ALWAYS or (self._ocr is Ocr.WITHOUT_TEXT and page.picture)
        if not wanted or self._drawn is None or self._left == 0:
            return page
        self._left -= 1
        if self._recognize is None:
            self._recognize = self.enter_context(recognizer())
        text = self._recognize(self._drawn(at))
        return (
            _Page(text, picture=False) if len(text.strip()) > len(page.text.strip()) else page
        )


def read_pdf(content: bytes, most: int, ocr: Ocr = Ocr.NEVER) -> Pages:
    """About `most` characters of it. Permanent `encrypted` where it asks for a password, `corrupt`
    where nobody can read it."""
    for by, opened in READERS:
        try:
            with opened(content) as (count, page, drawn):
                if count:
                    pages = _Recognized(page, drawn, ocr)
                    with pages:
                        return _gathered(count, pages, most, by)
        except (Permanent, MemoryError):
            raise
        except Exception:  # noqa: BLE001, S112 — what a flaw in a file does to a reader has no end
            continue
    raise Permanent(say("no reader finds a page in this file"), code="corrupt")


def _gathered(count: int, page: Callable[[int], _Page], most: int, by: str) -> Pages:
    """From the beginning, then from the end backwards, as much of each as is kept."""
    head = _read(iter(range(count)), page, most * HEAD, MOST_PAGES // 2)
    rest = iter(range(count - 1, len(head) - 1, -1))
    tail = _read(rest, page, most * (1 - HEAD), MOST_PAGES // 2)[::-1]
    left_out = count - len(head) - len(tail)
    pages = [*head, *tail]
    gap = GAP.format(n=left_out) if left_out else "\n\n"
    return Pages(
        text=gap.join("\n\n".join(each.text for each in part) for part in (head, tail)),
        speaks=any(each.text.strip() and not each.picture for each in pages),
        pictures=any(each.picture for each in pages),
        count=count,
        left_out=left_out,
        by=by,
    )


def _read(
    numbers: Iterator[int], page: Callable[[int], _Page], most: float, most_pages: int
) -> list[_Page]:
    pages, size = list[_Page](), 0
    for at in numbers:
        pages.append(page(at))
        size += len(pages[-1].text)
        if size >= most or len(pages) >= most_pages:
            break
    return pages


# — who reads —


@contextmanager
def _pdfium(content: bytes) -> Iterator[Open]:
    import pypdfium2  # noqa: PLC0415 — a runner never reads: its children do

    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) in PASSWORD:
            raise _locked() from error
        raise
    with closing(document):
        yield (
            len(document),
            lambda at: _pdfium_page(document, at),
            lambda at: _pdfium_picture(document, at),
        )


def _pdfium_page(document: Any, at: int) -> _Page:
    with closing(document[at]) as page:
        with closing(page.get_textpage()) as said:
            text = str(said.get_text_range())
        return _Page(text, picture=_is_little(text) and _covered(page))


def _pdfium_picture(document: Any, at: int) -> Picture:
    with closing(document[at]) as page:
        scale = SIDE / max(*page.get_size(), 1)
        with closing(page.render(scale=scale, grayscale=True)) as drawn:
            return Picture(bytes(drawn.buffer), drawn.width, drawn.height, drawn.stride)


def _covered(page: Any) -> bool:
    """Whether a picture is most of it."""
    wide, high = page.get_size()
    for each in page.get_objects(filter=[IMAGE], max_depth=DEEP):
        left, bottom, right, top = each.get_bounds()
        if (right - left) * (top - bottom) >= COVERS * wide * high:
            return True
    return False


@contextmanager
def _pypdf(content: bytes) -> Iterator[Open]:
    import pypdf  # noqa: PLC0415 — as above

    # It tells of every flaw that it gets over, and may quote the file.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    with pypdf.PdfReader(io.BytesIO(content)) as reader:
        if reader.is_encrypted and not reader.decrypt(""):
            raise _locked()
        yield len(reader.pages), lambda at: _pypdf_page(reader.pages[at]), None


def _pypdf_page(page: Any) -> _Page:
    text = page.extract_text()
    return _Page(text, picture=_is_little(text) and len(page.images) > 0)


@contextmanager
def _mupdf(content: bytes) -> Iterator[Open]:
    if importlib.util.find_spec("pymupdf") is None:
        yield 0, _nothing, None
        return
    pymupdf: Any = importlib.import_module("pymupdf")
    with pymupdf.open(stream=content, filetype="pdf") as document:
        if document.needs_pass:
            raise _locked()
        yield len(document), lambda at: _mupdf_page(document[at]), None


def _mupdf_page(page: Any) -> _Page:
    text = str(page.get_text())
    return _Page(text, picture=_is_little(text) and bool(page.get_images()))


READERS: Final[tuple[tuple[str, Callable[[bytes], AbstractContextManager[Open]]], ...]] = (
    ("pypdfium2", _pdfium),
    ("pypdf", _pypdf),
    ("pymupdf", _mupdf),
)


def _nothing(_: int) -> _Page:
    return _Page("", picture=False)


def _is_little(text: str) -> bool:
    return len(text.strip()) < LITTLE


def _locked() -> Permanent:
    return Permanent(say("this file asks for a password"), code="encrypted")
