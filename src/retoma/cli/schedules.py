"""`retoma schedules`: what is submitted by the clock, and how to hold it."""

from retoma.cli.noun import Noun, Rows
from retoma.console.kit import at, clean
from retoma.words import say, speak

schedules = Noun("schedules")
schedules.verb(
    "list_schedules",
    "list",
    shows=Rows(
        (
            *(say("name"), say("kind"), say("cron"), say("time zone")),
            *(say("missed"), say("next"), say("last"), say("last job")),
        ),
        lambda each: (
            *(each.name, each.kind, each.cron, each.timezone, each.missed),
            speak("paused") if each.paused_at else each.next_at,
            *(each.last_at, each.last_job),
        ),
        none=say("no schedules"),
    ),
)
schedules.verb(
    "pause_schedule",
    "pause",
    shows=lambda held, _: speak("schedule {name} is paused", name=clean(held.name)),
)
schedules.verb(
    "unpause_schedule",
    "unpause",
    shows=lambda going, _: speak(
        "schedule {name} goes on; its next tick is {at} UTC",
        name=clean(going.name),
        at=at(going.next_at),
    ),
)
schedules.verb(
    "run_schedule",
    "run",
    shows=lambda job, given: speak(
        "schedule {name}: job {job} waits its turn", name=clean(given.schedule), job=job.id
    ),
)
