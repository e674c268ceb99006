"""The command line: the verbs are declared in `verbs`, each by what it is about; the modules beside
it do what they say, and are imported when that is wanted, so that `retoma --help` costs little."""

import sys
from collections.abc import Sequence
from copy import copy
from typing import Annotated, Any

import typer

from retoma.cli.verbs import (
    alerts,
    audit,
    backups,
    batches,
    dead,
    doors,
    gates,
    jobs,
    money,
    pauses,
    sandbox,
    schedules,
    schema,
    services,
    settings,
    working,
    writer,
)
from retoma.words import Language, chosen, tell

cli = typer.Typer(
    name="retoma",
    help="Batches of slow, flaky, expensive work; whatever stopped goes on where it stopped.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=True,
    pretty_exceptions_enable=False,
)
GROUPS = {
    "jobs": jobs.jobs,
    "batches": batches.batches,
    "dead": dead.dead,
    "alerts": alerts.alerts,
    "audit": audit.audit,
    "limits": gates.limits,
    "pools": gates.pools,
    "rates": gates.rates,
    "breakers": gates.breakers,
    "budgets": money.budgets,
    "prices": money.prices,
    "reuse": money.reuse,
    "runners": working.runners,
    "schedules": schedules.schedules,
    "keys": doors.keys,
    "people": doors.people,
    "secrets": doors.secrets,
    "settings": settings.settings,
    "db": schema.database,
    "sandbox": sandbox.sandbox,
    "writer": writer.writer,
}
for verb in (
    *(working.runner, working.serve, working.demo, working.up, working.doctor),
    *(pauses.pause, pauses.resume, pauses.pauses),
    *(money.costs, services.worker_service, writer.writer_service),
    *(backups.backup, backups.restore, backups.upgrade),
):
    cli.command(verb.__name__.replace("_", "-"))(verb)
for name, group in GROUPS.items():
    cli.add_typer(group, name=name)


def main() -> None:
    """The `retoma` program."""
    from retoma.console.exits import end_with_the_reader, guarded

    end_with_the_reader()
    guarded(program())


def program(words: Sequence[str] | None = None) -> Any:
    """Return every verb, or the one that is typed, explained in the language of whoever types it."""
    made = build((sys.argv[1:] if words is None else words)[:1])
    if chosen() is not Language.EN:
        _translate(made)
    return made


def build(typed: Sequence[str] = ()) -> Any:
    """Return every verb, or the one that is typed, in English."""
    made: Any = typer.main.get_command(_narrowed(typed))
    _add_applications(made, typed)
    return made


def _narrowed(typed: Sequence[str]) -> typer.Typer:
    """Return a program with only the verb that was typed: to build all takes longer than most verbs run."""
    one = copy(cli)
    one.registered_groups = [each for each in cli.registered_groups if each.name in typed]
    one.registered_commands = [each for each in cli.registered_commands if each.name in typed]
    return one if one.registered_groups or one.registered_commands else cli


def _add_applications(made: Any, typed: Sequence[str]) -> None:
    """Add the verbs of the application that was typed; of all of them where no verb was."""
    if any(word in made.commands for word in typed):
        return
    from retoma.manifest import APPLICATIONS, application_of, installed, load

    known = (
        {*APPLICATIONS} if typed and typed[0] in APPLICATIONS else {*APPLICATIONS, *installed()}
    )
    for name in sorted(known.intersection(typed) or known):
        try:
            where = application_of(name).commands
            group = None if where is None else typer.main.get_group(load(where))
        except Exception as error:
            if name in typed:
                raise
            # A package of somebody else's must not take the verbs of all others along.
            print(f"retoma: the verbs of {name} are left out: {error}", file=sys.stderr)
        else:
            if group is not None:
                made.add_command(group, name)


def _translate(command: Any) -> None:
    """A command, what it takes, and those below it."""
    for each in (command, *command.params):
        if getattr(each, "help", None):
            each.help = tell(each.help)
    for below in getattr(command, "commands", {}).values():
        _translate(below)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"retoma {version('retoma')}")
        raise typer.Exit


@cli.callback()
def _retoma(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say it.")
    ] = False,
) -> None: ...
