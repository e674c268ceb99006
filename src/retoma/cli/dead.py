"""`retoma dead`: dead letters, and what a person does with them."""

from types import SimpleNamespace
from typing import TYPE_CHECKING

from retoma.cli.jobs import LISTED, OF_KIND, print_facts, told_again
from retoma.cli.noun import Noun
from retoma.console.kit import clean, console, job_document
from retoma.words import speak, tell

if TYPE_CHECKING:
    from retoma.services.dead import Letter, Letters

FACTS = ("kind", "batch", "key", "checkpoint", "failures", "generation", "payload")


def show_letters(found: "Letters", given: SimpleNamespace) -> None:
    if not found.jobs:
        console().print(speak("no dead letters"))
        return
    LISTED.print(found.jobs)
    codes = ", ".join(f"{n} {clean(code)}" for code, n in found.codes.items())
    console().print(speak("dead by code, discarded ones too: {codes}", codes=codes))
    LISTED.print_more(found.jobs, given)


def show_letter(letter: "Letter", _: SimpleNamespace) -> None:
    print(clean(tell(letter.why)))
    facts = job_document(letter.job)
    print_facts({name: facts[name] for name in FACTS})
    stack = str(letter.error.get("stack") or letter.error.get("traceback") or "")
    for line in stack.splitlines():
        print(clean(line))


dead = Noun("dead")
dead.verb(
    "list_dead",
    "list",
    shows=show_letters,
    document=lambda found, _: found.jobs,
    takes={"kind": OF_KIND, "code": "Only those with this code."},
)
dead.verb(
    "show_dead",
    "show",
    shows=show_letter,
    document=lambda letter, _: {
        **job_document(letter.job),
        "why": tell(letter.why),
        "error": letter.error,
    },
)
dead.verb("retry_dead", "retry", shows=told_again)
dead.verb(
    "discard_dead",
    "discard",
    shows=lambda _, given: speak("job {job} is put away; its history is kept", job=given.job),
    takes={"why": "A reason, for the timeline."},
)
