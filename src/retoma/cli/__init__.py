"""The command line. Every verb is named here and imported when it is wanted: `retoma --help` costs little."""

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from retoma.words import Language, chosen, tell

# Where each verb is, and what it is about.
VERBS: Mapping[str, tuple[str, str]] = {
    "runner": (
        "verbs.working:runner",
        "Claim jobs and run them, until told to stop (SIGTERM or Ctrl-C: drain, then leave).",
    ),
    "serve": ("verbs.working:serve", "Serve the API, until told to stop (SIGTERM or Ctrl-C)."),
    "demo": (
        "verbs.working:demo",
        "Five applications at work on this machine: a runner and a service are killed, nothing is lost.",
    ),
    "up": (
        "verbs.working:up",
        "The world of the demo, kept running until Ctrl-C; the next `up` goes on from there.",
    ),
    "doctor": (
        "verbs.working:doctor",
        "Look for what may be wrong, and say what to do about it. Changes nothing.",
    ),
    "worker-service": (
        "verbs.services:worker_service",
        "Scrape ads through proxies for an orchestrator, until told to stop.",
    ),
    "writer-service": (
        "verbs.writer:writer_service",
        "Store items of JSON documents for an orchestrator, until told to stop.",
    ),
    "backup": (
        "verbs.backups:backup",
        "Write database, evidence and secret key into one file, while everybody works.",
    ),
    "restore": (
        "verbs.backups:restore",
        "Fill an empty database from a backup. Runners of before can write nothing to it.",
    ),
    "upgrade": (
        "verbs.backups:upgrade",
        "Which jobs in flight the code that is installed now would not understand.",
    ),
    "jobs": ("jobs:jobs", "Look at jobs, and steer them."),
    "batches": ("batches:batches", "Look at batches, and steer all jobs of one at once."),
    "dead": ("dead:dead", "Dead letters: jobs that ended in failure."),
    "alerts": ("alerts:alerts", "What somebody should know of, and who knows."),
    "audit": ("verbs.audit:audit", "What is known of a job or a batch, signed."),
    "limits": ("gates:limits", "How many jobs of a kind or key may run at once."),
    "pools": ("gates:pools", "Shared exclusive things, and who holds them."),
    "rates": (
        "gates:rates",
        "How often something may be called, by all runners together.",
    ),
    "breakers": ("gates:breakers", "What guards services that may be down."),
    "costs": ("money:costs", "What was spent and saved."),
    "budgets": ("money:budgets", "How much may be spent before jobs wait."),
    "prices": ("money:prices", "What units cost, and what a dollar is worth."),
    "reuse": ("money:reuse", "Results of steps that other jobs may use again."),
    "runners": ("runners:runners", "Who runs jobs, and asking one of them to leave."),
    "pauses": ("pauses:pauses", "What is paused, and pausing it."),
    "schedules": ("schedules:schedules", "What is submitted by the clock."),
    "keys": ("access:keys", "What programs come in with."),
    "people": ("access:people", "Who may come in, and who is signed in."),
    "secrets": ("access:secrets", "Where secrets lie, never what they are."),
    "settings": (
        "settings:settings",
        "Every setting and knob; those that change while processes run.",
    ),
    "db": ("verbs.schema:database", "The schema of the database."),
    "sandbox": (
        "sandbox:sandbox",
        "Sites and proxies that stand for those of others, on this machine.",
    ),
    "writer": ("verbs.writer:writer", "The writer: what it may be asked for."),
}


class Verbs(TyperGroup):
    """Verbs that are listed by name and imported one by one."""

    def get_command(self, _: Any, name: str) -> Any:
        """Import a verb and return it, in the language of whoever types."""
        found = self.commands.get(name)
        if name not in VERBS or not isinstance(found, Listed):
            return found
        address, about = VERBS[name]
        self.commands[name] = made = command_at(f"retoma.cli.{address}", name)
        made.help = about
        if chosen() is not Language.EN:
            _translate(made)
        return made

    def format_commands(self, _: Any, formatter: Any) -> None:
        """List the verbs without importing them."""
        limit = formatter.width - 6 - max(map(len, self.commands))
        with formatter.section(tell("Commands")):
            formatter.write_dl(
                [(name, each.get_short_help_str(limit)) for name, each in self.commands.items()]
            )


class Listed(TyperCommand):
    """A verb that was not imported."""


def command_at(address: str, name: str) -> Any:
    """Return the verb that stands at `package.module:name`: a group, or a function."""
    from importlib import import_module

    module, _, attribute = address.partition(":")
    found = getattr(import_module(module), attribute)
    if not isinstance(found, typer.Typer) and not hasattr(found, "typer"):
        one = typer.Typer(add_completion=False, rich_markup_mode=None)
        one.command(name)(found)
        return typer.main.get_command(one)
    made = typer.main.get_group(getattr(found, "typer", found))
    made.name = name
    return made


cli = typer.Typer(
    name="retoma",
    cls=Verbs,
    help="Batches of slow, flaky, expensive work; whatever stopped goes on where it stopped.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=True,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """The `retoma` program."""
    from retoma.console.exits import end_with_the_reader, guarded

    end_with_the_reader()
    guarded(program())


def program(words: Sequence[str] | None = None) -> Any:
    """Return every verb, each explained in the language of whoever types it."""
    made: Any = typer.main.get_command(cli)
    for name, (_, about) in VERBS.items():
        made.add_command(Listed(name, help=about), name)
    _add_applications(made, (sys.argv[1:] if words is None else words)[:1])
    if chosen() is not Language.EN:
        _translate(made)
    return made


def build() -> Any:
    """Return every verb, imported."""
    made = program(())
    for name in VERBS:
        made.get_command(None, name)
    return made


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
