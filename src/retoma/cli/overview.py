"""The questions about all jobs at once: how many are where, what does not move."""

from retoma.console.kit import ask, at, clean, console, print_json, table
from retoma.engine.query import Durations, Minute
from retoma.engine.rules.states import State
from retoma.library import Retoma
from retoma.words import speak


def counts(database: str | None, as_json: bool, *, batch: int | None) -> None:
    found = ask(database, lambda app: app.counts_by_kind(batch))
    if as_json:
        print_json(found)
        return
    if not found:
        console().print(speak("no jobs"))
        return
    page = table(speak("kind"), *State)
    for kind, states in found.items():
        page.add_row(kind, *(str(states.get(state, "")) for state in State))
    console().print(page)


def funnel(database: str | None, as_json: bool, *, kind: str | None) -> None:
    found = ask(database, lambda app: app.funnel(kind))
    if as_json:
        print_json(found)
        return
    if not found:
        console().print(speak("nothing runs and nothing is parked"))
        return
    page = table(
        speak("kind"), speak("state"), speak("checkpoint"), speak("jobs"), speak("oldest")
    )
    for each in found:
        page.add_row(
            each.kind,
            each.state,
            clean(each.checkpoint or "—"),
            str(each.jobs),
            f"{each.oldest:.0f} s",
        )
    console().print(page)


def stuck(database: str | None, as_json: bool, *, quiet: str, limit: int) -> None:
    found = ask(database, lambda app: app.stuck(quiet=quiet, limit=limit))
    if as_json:
        print_json(found)
        return
    if not found:
        console().print(speak("everything that runs moves"))
        return
    page = table(
        speak("job"),
        speak("kind"),
        speak("batch"),
        speak("checkpoint"),
        speak("runner"),
        speak("quiet for"),
        speak("why"),
    )
    for each in found:
        page.add_row(
            str(each.job),
            each.kind,
            "" if each.batch is None else str(each.batch),
            clean(each.checkpoint or "—"),
            clean(each.runner),
            f"{each.quiet:.0f} s",
            speak("its runner's lease is over") if each.orphan else speak("no progress"),
        )
    console().print(page)


def pace(database: str | None, as_json: bool, *, last: str, kind: str | None) -> None:
    async def both(app: Retoma) -> tuple[list[Minute], list[Durations]]:
        return (
            await app.throughput(last=last, kind=kind),
            await app.durations(last=last, kind=kind),
        )

    minutes, lengths = ask(database, both)
    if as_json:
        print_json({"minutes": minutes, "durations": lengths})
        return
    out = console()
    if not minutes:
        out.print(speak("nothing moved"))
        return
    page = table(speak("minute"), speak("kind"), speak("state"), speak("jobs"))
    for each in minutes:
        page.add_row(at(each.at), each.kind, each.state, str(each.jobs))
    out.print(page)
    times = table(speak("kind"), speak("done"), speak("mean"), "p50", "p95")
    for one in lengths:
        spent = (f"{length:.3g} s" for length in (one.mean, one.p50, one.p95))
        times.add_row(one.kind, str(one.attempts), *spent)
    if lengths:
        out.print()
        out.print(times)
