"""What a file says, to be embedded: PDF, DOCX and HTML by the readers of documents, else a text in UTF-8.

Files come from strangers: a confined child reads them. A text is embedded whole or not at all, because what was
left out unseen would never be found.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from retoma.apps.embeddings.model import MOST_BYTES
from retoma.apps.readers.reading import LARGEST, Read, read_document
from retoma.apps.readers.rules import Ocr
from retoma.engine.errors import Permanent, Transient
from retoma.engine.isolate import Isolate, Limits
from retoma.words import Said, say

LIMITS: Final = Limits(timeout=60.0, cpu=45.0, memory=512 * 2**20)
HEAD: Final = 4_096  # bytes by which a file is known
MARKUP: Final = frozenset({".pdf", ".docx", ".html", ".htm"})
REFUSALS: Final[Mapping[str, Said]] = {
    "empty": say("there is no text in the file"),
    "corrupt": say("the file is broken"),
    "encrypted": say("the file asks for a password"),
    "needs_ocr": say("scanned pages: it needs OCR"),
    "unsupported": say("a type of file that is not accepted"),
    "wrong_extension": say("the content is not what the name of the file says"),
    "too_large": say("a text has {most} MiB at most", most=MOST_BYTES >> 20),
    "unreadable": say("the file could not be read"),
    "bad_text": say("it is no text in UTF-8"),
}


class UnreadableFile(Exception):
    """A file of which nothing can be embedded. `code`: one of REFUSALS."""

    def __init__(self, code: str) -> None:
        self.code = code if code in REFUSALS else "unreadable"
        super().__init__(REFUSALS[self.code])

    @property
    def why(self) -> Said:
        return REFUSALS[self.code]


def is_markup(head: bytes, name: str) -> bool:
    """Whether a reader is needed, by the first bytes or by the name."""
    return (
        b"%PDF-" in head[:1_024]
        or head.startswith(b"PK\x03\x04")
        or Path(name).suffix.lower() in MARKUP
    )


async def text_of(isolate: Isolate, content: bytes, name: str) -> str:
    """The whole text of a file. Raises UnreadableFile."""
    if len(content) > LARGEST:
        raise UnreadableFile("too_large")
    if not is_markup(content[:HEAD], name):
        return _plain(content)
    try:
        read: Read = await isolate.read(read_for_embedding, content, name, limits=LIMITS)
    except (Permanent, Transient, RuntimeError, TimeoutError) as error:
        raise UnreadableFile(getattr(error, "code", "unreadable")) from None
    if read.cut:
        raise UnreadableFile("too_large")
    return read.text


def read_for_embedding(path: str, name: str) -> Read:
    """As `read_document`, in a child, keeping all that a document of a collection may have."""
    content = Path(path).read_bytes()
    return read_document(content, name, Ocr.NEVER, MOST_BYTES)


def _plain(content: bytes) -> str:
    if len(content) > MOST_BYTES:
        raise UnreadableFile("too_large")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableFile("bad_text") from None
