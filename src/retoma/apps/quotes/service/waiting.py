"""What parked quotes wait for, and how a person puts it right."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from retoma.apps.quotes import store
from retoma.apps.quotes.service.writing import read
from retoma.library import Retoma
from retoma.words import Language, Said, say, tell


@dataclass(frozen=True, slots=True)
class WaitingFor:
    """What stopped some quotes, the message of the newest of them, and how to put it right."""

    code: str
    quotes: int
    message: str | None
    cure: str


# How a person puts right what stopped a quote.
CURES: Final[Mapping[str, Said]] = {
    "no_key": say(
        "Set the key that is named (`RETOMA_ANTHROPIC_KEY` or `RETOMA_SERPAPI_KEY`) and start the runners"
        " again; then resume."
    ),
    "unauthorized": say(
        "The service refused the key: give the runners one that is good and start them again; then resume."
    ),
    "wrong_address": say(
        "There is no such service or no such model: correct `RETOMA_ANTHROPIC_MODEL` or the address of the"
        " service and start the runners again; then resume."
    ),
    "rejected": say(
        "The service rejected the request: put right what it says (the credit of the account, or"
        " `RETOMA_ANTHROPIC_MODEL`) and start the runners again; then resume."
    ),
    "config": say(
        "Put right the setting or the key that it names and start the runners again; then resume."
    ),
    "budget": say("Add credit at the service, or raise the budget; then resume."),
}
OTHERWISE: Final = say("Put right what it says; then resume.")


async def list_waiting(
    retoma: Retoma, language: Language | None, lote: int | None = None
) -> list[WaitingFor]:
    """List what the parked quotes of one lote, or of all, wait for; the most first."""
    found = await read(retoma, lambda tx: store.parked_by_code(tx, lote))
    return [waiting_for(*each, language) for each in found]


def waiting_for(
    code: str, quotes: int, message: str | None, language: Language | None
) -> WaitingFor:
    return WaitingFor(code, quotes, message, tell(CURES.get(code, OTHERWISE), language))
