"""Nouns of the embeddings application: a collection, its documents, the job of each as the document shows it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from retoma.apps.embeddings.chunks import Rule
from retoma.engine.errors import Action, BadInput, Code, ErrorClass, table
from retoma.engine.states import State
from retoma.words import Language, Said, say

KIND: Final = "embeddings.document"
COMPLETION: Final = "embeddings.completion"
ATTEMPTS: Final = 5  # the document's maxAttempts; the view queue_jobs says it too
PROVIDER: Final = "embeddings.provider"  # its rate and its breaker
MOST_DOCUMENTS: Final = 1_000  # of one submission
MOST_BYTES: Final = 5 << 20  # of one text: a long book
MOST_CHUNKS: Final = 20_000  # of one text
LONGEST_NAME: Final = 500  # characters of a document's name
SIZES: Final = (100, 30_000)  # characters of a chunk
SIZE: Final = 800
OVERLAP: Final = 100
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


MOST_PAIRS: Final = 20  # of metadata
LONGEST_VALUE: Final = 500  # characters of one of their values
KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,49}")
MetadataValue = str | int | bool


class JobStatus(StrEnum):
    """Of a job in `queue_jobs`, as the document says it."""

    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"


STATUS: Final[Mapping[State, JobStatus]] = {
    State.WAITING: JobStatus.PENDING,
    State.PARKED: JobStatus.PENDING,
    State.RUNNING: JobStatus.PROCESSING,
    State.DONE: JobStatus.COMPLETED,
    State.SKIPPED: JobStatus.COMPLETED,
    State.DEAD: JobStatus.FAILED,
    State.CANCELED: JobStatus.FAILED,
}

# What may end an attempt, and what follows. No message quotes a text.
CODES: Final = table(
    Code("empty_text", ErrorClass.DATA, Action.BURY, None, "o texto não tem nada"),
    Code("bad_text", ErrorClass.DATA, Action.BURY, None, "o texto tem caracteres partidos"),
    Code("too_long", ErrorClass.DATA, Action.BURY, None, "o texto é longo demais"),
    Code("too_large", ErrorClass.DATA, Action.BURY, None, "o documento é grande demais"),
    Code("refused", ErrorClass.DATA, Action.BURY, None, "o serviço não aceita este texto"),
    Code("wrong_dims", ErrorClass.DATA, Action.RETRY, None, "o vetor veio com outro tamanho"),
    Code("not_finite", ErrorClass.DATA, Action.RETRY, None, "o vetor veio sem direção"),
    Code("missing_row", ErrorClass.DATA, Action.RETRY, None, "faltou uma linha na resposta"),
    Code(
        "other_model",
        ErrorClass.CONFIG,
        Action.PARK,
        None,
        "a coleção é de outro modelo: refaça-a, ou volte ao modelo dela",
    ),
)

# The same for whoever reads English.
MEANINGS: Final[Mapping[str, Said]] = {
    "empty_text": say("the text has nothing in it"),
    "bad_text": say("the text has halves of characters in it"),
    "too_long": say("the text is too long"),
    "too_large": say("the document is too large"),
    "refused": say("the service does not take this text"),
    "wrong_dims": say("the vector came with another size"),
    "not_finite": say("the vector came without a direction"),
    "missing_row": say("a row of the answer was missing"),
    "other_model": say(
        "the collection is of another model: embed it anew, or go back to its model"
    ),
}


def meaning_of(code: str | None, language: Language | None) -> str | None:
    """What a code of ours means; None where it is none of ours."""
    known = CODES.get(code or "")
    if known is None:
        return None
    return str(MEANINGS[known.code]) if language is Language.EN else known.meaning


@dataclass(frozen=True, slots=True)
class Ask:
    """What a job is told: the document whose turn it is."""

    document: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and its hash by the model it is asked of."""

    text: str
    hash: str


@dataclass(frozen=True, slots=True)
class Model:
    """By what a text becomes a vector; vectors of two models are never compared."""

    name: str
    version: str
    dims: int

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.dims})"


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A text that is to be found again. The same name in a collection is the same document.

    `metadata`: what it may be filtered by; None: what the same document has already."""

    name: str
    text: str
    metadata: Mapping[str, MetadataValue] | None = None


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why a document was not taken; those beside it were."""

    place: int
    name: str
    code: str
    message: str


def flaw_of(place: int, given: NewDocument) -> Flaw | None:
    """Why it cannot be taken, in words that quote nothing of it."""
    name = given.name if _whole(given.name) else repr(given.name)
    if not given.name.strip() or len(given.name) > LONGEST_NAME or name != given.name:
        said = say("a document needs a name of 1 to {most} characters", most=LONGEST_NAME)
        return Flaw(place, name[:LONGEST_NAME], "bad_name", str(said))
    if not given.text.strip():
        return Flaw(place, name, "empty_text", str(say("the text has nothing in it")))
    if not _whole(given.text):
        said = say("the text has NULs or halves of characters in it, which nobody can keep")
        return Flaw(place, name, "bad_text", str(said))
    if len(given.text.encode()) > MOST_BYTES:
        said = say("a text has {most} MiB at most", most=MOST_BYTES >> 20)
        return Flaw(place, name, "too_large", str(said))
    try:
        metadata_pairs(given.metadata or {})
    except BadInput as error:
        return Flaw(place, name, "bad_metadata", str(error.args[0]))
    return None


def metadata_pairs(given: Mapping[str, Any]) -> dict[str, str]:
    """Metadata as it is compared: each value as text, so that 2024 is 2024 however it was sent."""
    if len(given) > MOST_PAIRS:
        raise BadInput(say("metadata has {most} keys at most", most=MOST_PAIRS))
    return {_checked_key(key): _checked_value(key, value) for key, value in given.items()}


def parse_pairs(given: Sequence[str]) -> dict[str, str]:
    """`key=value` each, as a person writes metadata; blank ones are passed over."""
    pairs: dict[str, str] = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not each.strip():
            continue
        if not equals:
            raise BadInput(say("metadata is given as key=value, not {text!r}", text=each[:100]))
        pairs[key.strip()] = value.strip()
    return pairs


def _checked_key(key: str) -> str:
    if not KEY.fullmatch(key):
        raise BadInput(
            say(
                "a key of metadata has 1 to 50 letters, digits, - _ and ., not {key!r}",
                key=key[:100],
            )
        )
    return key


def _checked_value(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    told = str(value) if isinstance(value, int) and abs(value) < 1 << 63 else value
    if not isinstance(told, str) or len(told) > LONGEST_VALUE or not _whole(told):
        raise BadInput(
            say(
                "metadata {key}: a value is yes or no, a whole number, or up to {most} characters",
                key=key,
                most=LONGEST_VALUE,
            )
        )
    return told


def _whole(text: str) -> bool:
    """Whether both databases can keep it."""
    return "\0" not in text and text.encode("utf-8", "ignore").decode() == text


def checked_name(name: str) -> str:
    """A name that a collection may have, and that fits in an address."""
    if not NAME.fullmatch(name):
        raise BadInput(
            say(
                "a collection is called by 1 to 100 letters, digits, - _ and ., not {name!r}",
                name=name[:200],
            )
        )
    return name


def checked_rule(size: int = SIZE, overlap: int = OVERLAP) -> Rule:
    """How the texts of a collection are cut."""
    least, most = SIZES
    if not least <= size <= most:
        raise BadInput(
            say(
                "chunks of a collection have {least} to {most} characters, not {size}",
                least=least,
                most=most,
                size=size,
            )
        )
    return Rule(size, overlap)


@dataclass(frozen=True, slots=True)
class Done:
    """What a job ends with. `embedded`: texts that this job had embedded; the others were there."""

    chunks: int
    embedded: int
