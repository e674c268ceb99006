"""What stands on a picture of a page, by libtesseract: loaded into the confined child, no program is started.

Debian has it as `tesseract-ocr`, with `tesseract-ocr-por` for Portuguese; nothing is fetched at run time.
"""

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from retoma.engine.rules.errors import Permanent
from retoma.words import say

MOST_PAGES: Final = 20  # recognized in one file: half a second each, of the 45 s of a child
SIDE: Final = 2_000  # pixels of the longer side: 170 dpi of an A4 page
LIBRARIES: Final = ("libtesseract.so.5", "libtesseract.so.4", "libtesseract.5.dylib")
LANGUAGES: Final = (b"por+eng", b"por", b"eng")  # the first whose data is installed
# One thread: the limit of the processor's seconds counts all of them.
ONE_THREAD: Final = "OMP_THREAD_LIMIT"


@dataclass(frozen=True, slots=True)
class Picture:
    """A page as a picture in shades of grey: a byte for each pixel, `stride` bytes for each line."""

    pixels: bytes
    width: int
    height: int
    stride: int


Recognize = Callable[[Picture], str]


@contextmanager
def recognizer() -> Iterator[Recognize]:
    """Recognizes pictures while this lasts. Permanent `no_ocr` where libtesseract or its data is missing."""
    os.environ[ONE_THREAD] = "1"
    library = _library()
    handle = ctypes.c_void_p(library.TessBaseAPICreate())
    try:
        if not any(library.TessBaseAPIInit3(handle, None, each) == 0 for each in LANGUAGES):
            raise _missing()

        def recognize(picture: Picture) -> str:
            size = (picture.width, picture.height, 1, picture.stride)
            library.TessBaseAPISetImage(handle, picture.pixels, *size)
            found = library.TessBaseAPIGetUTF8Text(handle)
            if not found:
                return ""
            try:
                return ctypes.string_at(found).decode("utf-8", "replace")
            finally:
                library.TessDeleteText(ctypes.c_void_p(found))

        yield recognize
    finally:
        library.TessBaseAPIEnd(handle)
        library.TessBaseAPIDelete(handle)


def _library() -> Any:
    for name in LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.TessBaseAPICreate.restype = ctypes.c_void_p
        library.TessBaseAPIGetUTF8Text.restype = ctypes.c_void_p
        return library
    raise _missing()


def _missing() -> Permanent:
    return Permanent(say("libtesseract or its language data is not installed"), code="no_ocr")
