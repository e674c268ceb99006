"""A reader for children that dies of one file and never comes to the end of another, at once."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from retoma.apps.readers import pdf
from retoma.apps.readers.ocr import Recognize
from retoma.apps.readers.reading import Read, read_file


def read_or_die(path: str, name: str, ocr: str = "nunca") -> Read:
    """As the real one, but for `…-CR.pdf` and `…-ED.pdf`: with those the real one takes its time."""
    if "-CR." in name:
        os.abort()
    while "-ED." in name:
        pass
    return read_file(path, name, ocr)


def read_by_fake_ocr(path: str, name: str, ocr: str) -> Read:
    """With something in the place of libtesseract that says how large each picture is."""

    @contextmanager
    def fake() -> Iterator[Recognize]:
        yield (
            lambda picture: (
                f"exordial requerente citação {picture.width}x{picture.height} "
                f"{len(set(picture.pixels)) > 1} {len(picture.pixels) >= picture.width * picture.height}"
            )
        )

    pdf.recognizer = fake  # type: ignore[attr-defined]
    return read_file(path, name, ocr)
