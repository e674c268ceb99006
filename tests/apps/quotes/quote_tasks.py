"""The document's own `quote_tasks.py`, made of its own text; and as a program, `python -m … URL QUOTE`.

What its text names and does not define is provided: session and models by the face, under the module it imports
from; its products by whoever asks. The program says each, and goes on when it is told a line.
"""

import sys
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from retoma.apps.quotes import face

TEXT = Path(__file__).parent / "document" / "quote_tasks.txt"
MODULE = "app.services.checkpoint_manager"


def process_quote_request(
    sessions: face.SessionMaker,
    products: Iterable[Any],
    manager: type[face.CheckpointManager] = face.CheckpointManager,
) -> Callable[[int], None]:
    """The function of the document."""
    module = types.ModuleType(MODULE)
    module.__dict__.update(
        CheckpointManager=manager, ProcessingCheckpoint=face.ProcessingCheckpoint
    )
    before = {name: sys.modules.get(name) for name in ("app", "app.services", MODULE)}
    sys.modules |= {"app": module, "app.services": module, MODULE: module}
    given: dict[str, Any] = {
        "SessionLocal": sessions,
        "QuoteRequest": face.QuoteRequest,
        "QuoteStatus": face.QuoteStatus,
        "products": products,
    }
    try:
        exec(compile(TEXT.read_text(), TEXT.name, "exec"), given)  # noqa: S102 — the document's own
    finally:
        for name, was in before.items():
            sys.modules.pop(name)
            if was is not None:
                sys.modules[name] = was
    made: Callable[[int], None] = given["process_quote_request"]
    return made


class Telling(face.CheckpointManager):
    """Says what the document keeps to itself."""

    def get_resume_checkpoint(self, quote: face.QuoteRequest) -> face.ProcessingCheckpoint:
        found = super().get_resume_checkpoint(quote)
        say(f"resumes from {found}")
        return found


def products() -> Iterator[str]:
    for name in ("a", "b"):
        say(f"product {name}")
        sys.stdin.readline()
        yield name


def say(what: str) -> None:
    print(what, flush=True)


def main(url: str, quote: int) -> None:
    sessions = face.SessionMaker(url)
    run = process_quote_request(sessions, products(), Telling)
    try:
        run(quote)
    except face.QuoteTaken as taken:
        say(f"taken: {taken}")
        sys.stdin.readline()
        run(quote)
    say("ended")  # as the document does: nobody closes anything


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
