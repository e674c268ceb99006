"""How a command ends: exit codes that scripts can trust, errors in one line on stderr."""

import io
import os
import signal
import sys
import traceback
from collections.abc import Callable
from enum import IntEnum

from retoma.words import speak, tell


class Exit(IntEnum):
    """What a caller may conclude. 69 and 75 are those of sysexits.h."""

    OK = 0
    FAILED = 1  # the thing was refused, or did not go well
    USAGE = 2
    UNAVAILABLE = 69  # the database cannot be reached
    TEMPORARY = 75  # busy or full: the same command may work later
    INTERRUPTED = 130  # Ctrl-C
    UNREAD = 141  # whoever read what it says has left: as a shell tells of SIGPIPE


class Stop(Exception):
    """End this command now, with this code and one line for the reader."""

    def __init__(self, code: Exit, message: str) -> None:
        super().__init__(message)
        self.code = code


def guarded(command: Callable[[], object]) -> None:
    """Run it; whatever is raised becomes one line and an exit code. RETOMA_DEBUG=1: the stack."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a narrow locale must not break a list
    try:
        command()
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
    except Exception as raised:  # noqa: BLE001 — the last door: said in one line
        error = cause_of(raised)
        if _is_unread(error):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the last flush
            sys.exit(Exit.UNREAD)
        if os.environ.get("RETOMA_DEBUG") == "1":
            print(_redacted(traceback.format_exc()), file=sys.stderr)
        print(f"retoma: {_in_one_line(error)}", file=sys.stderr)
        sys.exit(code_of(error))


def cause_of(error: Exception) -> Exception:
    """Return the error that ended a group of tasks: the first Stop among them, else the first of all."""
    if not isinstance(error, ExceptionGroup):
        return error
    return cause_of((error.subgroup(Stop) or error).exceptions[0])


def _is_unread(error: Exception) -> bool:
    if isinstance(error, ExceptionGroup):
        return error.subgroup(BrokenPipeError) is not None
    return isinstance(error, BrokenPipeError)


def end_with_the_reader() -> None:
    """`retoma jobs list | head`: end as every program does whose reader has enough."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def stay() -> None:
    """A program that works must not die because nobody reads what it says."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def stay_until_told() -> None:
    """The same; and SIGTERM before anything is claimed: there is nothing to drain, nothing went wrong."""
    stay()

    def leave(*_: object) -> None:
        sys.exit(Exit.OK)

    signal.signal(signal.SIGTERM, leave)


def code_of(error: Exception) -> Exit:
    """The engine is imported here, not above: --help must not pay for it."""
    from retoma.db import Away, Busy, Full
    from retoma.engine.rules.errors import BadInput

    match error:
        case Stop():
            return error.code
        case BadInput():
            return Exit.USAGE
        case Away():
            return Exit.UNAVAILABLE
        case Busy() | Full():
            return Exit.TEMPORARY
        case _:
            return Exit.FAILED


def _in_one_line(error: Exception) -> str:
    from retoma.db import DatabaseError
    from retoma.engine.rules.errors import RetomaError

    said = error.args[0] if error.args and isinstance(error.args[0], str) else ""
    text = " ".join(_redacted(tell(said) if said == str(error) else str(error)).split())
    if isinstance(error, Stop | RetomaError | DatabaseError):
        return text
    return speak(
        "{error}: {text} (RETOMA_DEBUG=1 shows where)", error=type(error).__name__, text=text
    )


def _redacted(text: str) -> str:
    from retoma.secret import redact_text

    return redact_text(text)
