"""The command line: the verbs are declared in `verbs`, each by what it is about; the modules beside
it do what they say, and are imported when that is wanted, so that `retoma --help` costs little."""

from typing import Annotated, Any

import typer

from retoma.cli.verbs import (
    alerts,
    batches,
    dead,
    doors,
    gates,
    jobs,
    money,
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
    add_completion=False,
    pretty_exceptions_enable=False,
)
GROUPS = {
    "jobs": jobs.jobs,
    "batches": batches.batches,
    "dead": dead.dead,
    "alerts": alerts.alerts,
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
    *(money.costs, services.worker_service, writer.writer_service),
):
    cli.command(verb.__name__.replace("_", "-"))(verb)
for name, group in GROUPS.items():
    cli.add_typer(group, name=name)


def main() -> None:
    """The `retoma` program."""
    from retoma.cli.exits import end_with_the_reader, guarded

    end_with_the_reader()
    guarded(program())


def program() -> Any:
    """Every verb, explained in the language of whoever types it."""
    made = typer.main.get_command(cli)
    if chosen() is not Language.EN:
        _translate(made)
    return made


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
