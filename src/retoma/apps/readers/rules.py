"""What is decided about a file before it is read."""

from enum import StrEnum
from typing import Final

MOST_TEXT: Final = 200_000  # characters that are kept of a file, where nobody says otherwise


class Ocr(StrEnum):
    """When a page is read from its picture."""

    NEVER = "nunca"
    WITHOUT_TEXT = "sem_texto"  # where a page is a picture and says nothing, or nearly
    ALWAYS = "sempre"
