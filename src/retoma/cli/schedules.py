"""`retoma schedules`: what is submitted by the clock, and how to hold it."""

from typing import Any

from retoma.console.kit import ACTOR, ask, at, clean, console, job_document, print_json, table
from retoma.engine.store import Schedule
from retoma.words import speak


def list_(database: str | None, as_json: bool) -> None:
    found = ask(database, lambda app: app.schedules())
    if as_json:
        print_json([_document(each) for each in found])
        return
    if not found:
        console().print(speak("no schedules"))
        return
    page = table(
        speak("name"),
        speak("kind"),
        speak("cron"),
        speak("time zone"),
        speak("missed"),
        speak("next"),
        speak("last"),
        speak("last job"),
    )
    for each in found:
        plan = each.plan
        page.add_row(
            clean(plan.name),
            plan.kind,
            plan.cron,
            plan.timezone,
            str(plan.missed),
            speak("paused") if each.paused_at else at(each.next_at),
            at(each.last_at),
            "" if each.last_job is None else str(each.last_job),
        )
    console().print(page)


def pause(database: str | None, as_json: bool, name: str) -> None:
    held = ask(database, lambda app: app.pause_schedule(name, actor=ACTOR))
    if as_json:
        print_json(_document(held))
    else:
        print(speak("schedule {name} is paused", name=clean(name)))


def unpause(database: str | None, as_json: bool, name: str) -> None:
    going = ask(database, lambda app: app.unpause_schedule(name, actor=ACTOR))
    if as_json:
        print_json(_document(going))
    else:
        print(
            speak(
                "schedule {name} goes on; its next tick is {at} UTC",
                name=clean(name),
                at=at(going.next_at),
            )
        )


def run(database: str | None, as_json: bool, name: str) -> None:
    job = ask(database, lambda app: app.run_schedule(name, actor=ACTOR))
    if as_json:
        print_json(job_document(job))
    else:
        print(speak("schedule {name}: job {job} waits its turn", name=clean(name), job=job.id))


def _document(schedule: Schedule) -> dict[str, Any]:
    plan = schedule.plan
    return {
        "name": plan.name,
        "kind": plan.kind,
        "cron": plan.cron,
        "timezone": plan.timezone,
        "missed": plan.missed,
        "paused_at": schedule.paused_at,
        "next_at": schedule.next_at,
        "last_at": schedule.last_at,
        "last_job": schedule.last_job,
    }
