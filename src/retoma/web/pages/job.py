"""The page of one job: where it stands and why, what it did, and what a person may do about it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request
from pydantic import Field
from starlette.responses import Response

from retoma.codec import decode
from retoma.engine.rules.errors import IllegalMove
from retoma.engine.rules.states import ParkReason, State
from retoma.services.jobs import AttemptSeen, Event, EvidenceSeen, JobSeen
from retoma.web.pages.asked import Blank, Number
from retoma.web.pages.kit import ALooker, Looker, Screen, drawn
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import Form, did, form_of, page_router, serve_screen
from retoma.web.problems import Refusal
from retoma.web.sign_in import Operator, Viewer
from retoma.web.wire import JobId, Sha256, shown_details
from retoma.words import Said, say

routes = page_router()

LINES: Final = 100  # of a timeline
READ: Final = 20_000  # characters of a payload, a result or a text that is shown
BAD: Final = frozenset({"failed", "buried", "lost", "stalled", "step_failed"})
SPOKEN: Final = ("step", "key", "name", "code", "message", "why", "reason")
SENTENCES: Final = ("message", "why", "reason")  # of those; the others are names
PICTURES: Final = ("image/png", "image/jpeg", "image/webp", "image/gif")
# Neither a program nor an address in it can do anything; what it looks like may be seen.
SANDBOX: Final = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"

BeforeLine = Annotated[Number | None, Blank, Query()]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Shown256 = Annotated[Digest | None, Blank, Query()]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a timeline, as it is told."""

    event: Event
    said: str
    more: str  # all else that was written down, as text

    @property
    def bad(self) -> bool:
        return self.event.type in BAD


@dataclass(frozen=True, slots=True)
class Attempt:
    """One claim, and what went wrong with it."""

    seen: AttemptSeen
    error: str
    stack: str


@dataclass(frozen=True, slots=True)
class JobScreen(Screen):
    """One job."""

    job: int
    before: int | None = None

    @property
    def concern(self) -> Concern:
        return Concern(job=self.job)

    async def draw(self) -> Sequence[Region]:
        retoma = self.pages.house.retoma
        seen = await retoma.see(self.job, before=self.before, limit=LINES)
        why = await retoma.explain(self.job)
        evidence = await retoma.evidence.list(self.job)
        costs = await retoma.costs.of_job(self.job)
        names = {each.boot: each.name for each in await retoma.runners.list()}
        given: dict[str, Any] = {
            "seen": seen,
            "job": seen.job,
            "names": names,
            "why": self.view.tell(why),
            "buttons": buttons(seen),
            "costs": costs,
            "lines": [self._line(event) for event in seen.events],
            "attempts": self._attempts(seen),
            "evidence": list(reversed(evidence)),
            "payload": readable(seen.job.payload),
            "result": None if seen.job.result is None else readable(seen.job.result),
        }
        return [
            drawn(f"job-{name}", self.pages.render(f"job_{name}.html", self.view, **given))
            for name in ("head", "steps", "attempts", "timeline", "side")
        ]

    def _line(self, event: Event) -> Line:
        details = shown_details(event.details, stacks=self.view.steers)
        told = details if isinstance(details, dict) else {}
        said = " · ".join(
            self.view.tell(self.view.tell_stored(str(told[name])))
            if name in SENTENCES
            else str(told[name])
            for name in SPOKEN
            if told.get(name) not in (None, "")
        )
        rest = {name: value for name, value in told.items() if name not in SPOKEN}
        return Line(event, said, text_of(rest) if rest else "")

    def _attempts(self, seen: JobSeen) -> list[Attempt]:
        ends = {
            event.epoch: event.details
            for event in reversed(seen.events)
            if event.type in BAD and event.epoch is not None and isinstance(event.details, dict)
        }
        return [self._attempt(each, ends.get(each.epoch, {})) for each in seen.attempts]

    def _attempt(self, seen: AttemptSeen, end: dict[str, Any]) -> Attempt:
        message = self.view.tell_stored(str(end.get("message") or ""))
        error = " · ".join(each for each in (str(end.get("code") or ""), message) if each)
        stack = str(end.get("stack") or "") if self.view.steers else ""
        return Attempt(seen, error, stack)


def buttons(seen: JobSeen) -> list[str]:
    """What may be done with it as it stands."""
    job = seen.job
    match job.state:
        case State.WAITING | State.RUNNING:
            return [] if job.cancel_at else ["cancel"]
        case State.PARKED if job.reason == ParkReason.UNKNOWN_REMOTE:
            return ["gone", "adopt", "cancel"]
        case State.PARKED:
            return ["resume", "skip", "cancel"]
        case State.DEAD:
            return ["retry", "fresh", "skip", *([] if job.discarded_at else ["discard"])]
        case _:
            return ["retry", "fresh"]


def readable(text: str) -> str:
    """A stored value as a person reads it."""
    shown = text_of(decode(text))
    return shown if len(shown) <= READ else f"{shown[:READ]}…"


def text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and set(value) <= {"stack"}:
        return str(value.get("stack", ""))
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def job_screen(job: JobId, who: ALooker, before: BeforeLine = None) -> JobScreen:
    return JobScreen(who.pages, who.view, job, before)


AScreen = Annotated[JobScreen, Depends(job_screen)]


@routes.get("/jobs/{job}")
async def show(_: Viewer, who: ALooker, screen: AScreen, evidence: Shown256 = None) -> Response:
    """Also a piece of its evidence, where the address names one."""
    viewed = None
    if evidence is not None and who.view.steers:
        viewed = await _viewed(who, screen.job, evidence)
    return await who.page(screen, "job.html", job=screen.job, viewed=viewed)


serve_screen(routes, "/jobs/{job}", job_screen)


# — evidence —


async def _viewed(who: Looker, job: int, sha256: str) -> dict[str, Any]:
    piece = await _piece(who, job, sha256)
    media = piece.media.partition(";")[0]
    shown: dict[str, Any] = {"piece": piece, "media": media, "text": None}
    if media == "text/html":
        shown["how"] = "frame"
    elif media in PICTURES:
        shown["how"] = "picture"
    else:
        raw = await who.house.retoma.evidence.read(sha256)
        shown |= {"how": "text", "text": _as_text(raw, media)}
    return shown


def _as_text(raw: bytes, media: str) -> str | None:
    """None: it is no text."""
    try:
        text = raw.decode("utf-8")
        if media == "application/json":
            text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    return text if len(text) <= READ else f"{text[:READ]}…"


async def _piece(who: Looker, job: int, sha256: str) -> EvidenceSeen:
    for each in await who.house.retoma.evidence.list(job):
        if each.sha256 == sha256:
            return each
    raise Refusal("not_found", say("job {job} shows no such evidence", job=job))


@routes.get("/jobs/{job}/evidence/{sha256}")
async def bytes_of(job: JobId, sha256: Sha256, _: Operator, who: ALooker) -> Response:
    """For the frame of the page: a picture, or a page in which nothing can run."""
    piece = await _piece(who, job, sha256)
    media = piece.media.partition(";")[0]
    if media not in (*PICTURES, "text/html"):
        media = "text/plain"
    return Response(
        await who.house.retoma.evidence.read(sha256),
        headers={
            "Content-Type": media if media in PICTURES else f"{media}; charset=utf-8",
            "Content-Security-Policy": SANDBOX,
            "Cache-Control": "no-store",
        },
    )


# — buttons —


@routes.post("/jobs/{job}/{verb}")
async def steer(
    job: JobId, verb: str, actor: Operator, who: ALooker, request: Request
) -> Response:
    form = await form_of(request)
    try:
        said = await _steered(who, job, verb, form, actor.name)
    except IllegalMove as error:
        state = (await who.house.retoma.get(job)).state
        raise Refusal("illegal_move", error.args[0], more={"state": state}) from error
    return did(who, who.view.tell(said), f"/jobs/{job}")


async def _steered(who: Looker, job: int, verb: str, form: Form, actor: str) -> Said:
    retoma = who.house.retoma
    match verb:
        case "retry" | "fresh":
            await retoma.retry(job, fresh=verb == "fresh", actor=actor)
            return say("job {job} runs once more", job=job)
        case "cancel":
            state = await retoma.cancel(job, actor=actor)
            if state is State.CANCELED:
                return say("job {job} is canceled", job=job)
            return say("job {job} was asked to end", job=job)
        case "resume":
            await retoma.resume(job, actor=actor)
            return say("job {job} goes on", job=job)
        case "skip":
            await retoma.skip(job, form.one("why") or "", actor=actor)
            return say("job {job} is skipped", job=job)
        case "discard":
            await retoma.dead.discard(job, form.one("why"), actor=actor)
            return say("dead letter {job} is put away", job=job)
        case "gone":
            await retoma.remote.send_again(job, actor=actor)
            return say("job {job}: it is done again", job=job)
        case "adopt":
            await retoma.remote.adopt(job, _handle(form), actor=actor)
            return say("job {job} goes on with what was found", job=job)
        case _:
            raise Refusal("not_found", say("there is nothing at this address"))


def _handle(form: Form) -> Any:
    """What somebody typed: JSON where it is some, else the text itself."""
    given = form.one("handle")
    if given is None:
        raise Refusal("bad_input", say("say what it was: its handle, or what it gave"))
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return given
