"""The command line: every verb and what it takes. What a verb does is imported when it is run,
so that `retoma --help` costs one import."""

from pathlib import Path
from typing import Annotated, Any

import typer

from retoma.words import Language, chosen, tell

LARGEST = 2**63 - 1  # ids are 64 bits in both databases


def _group(help_: str) -> typer.Typer:
    return typer.Typer(help=help_, no_args_is_help=True, rich_markup_mode=None)


cli = typer.Typer(
    name="retoma",
    help="Batches of slow, flaky, expensive work; whatever stopped goes on where it stopped.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
)
jobs = _group("Look at jobs, and steer them.")
batches = _group("Look at batches, and steer all jobs of one at once.")
dead = _group("Dead letters: jobs that ended in failure.")
limits = _group("How many jobs of a kind or key may run at once.")
pools = _group("Shared exclusive things, and who holds them.")
rates = _group("How often something may be called, by all runners together.")
breakers = _group("What guards services that may be down.")
budgets = _group("How much may be spent before jobs wait.")
prices = _group("What units cost, and what a dollar is worth.")
reuse = _group("Results of steps that other jobs may use again.")
runners = typer.Typer(rich_markup_mode=None)
schedules = _group("What is submitted by the clock.")
keys = _group("What programs come in with.")
people = _group("Who may come in, and who is signed in.")
secrets = _group("Where secrets lie, never what they are.")
database = _group("The schema of the database.")
cli.add_typer(jobs, name="jobs")
cli.add_typer(batches, name="batches")
cli.add_typer(dead, name="dead")
cli.add_typer(limits, name="limits")
cli.add_typer(pools, name="pools")
cli.add_typer(rates, name="rates")
cli.add_typer(breakers, name="breakers")
cli.add_typer(budgets, name="budgets")
cli.add_typer(prices, name="prices")
cli.add_typer(reuse, name="reuse")
cli.add_typer(runners, name="runners")
cli.add_typer(schedules, name="schedules")
cli.add_typer(keys, name="keys")
cli.add_typer(people, name="people")
cli.add_typer(secrets, name="secrets")
cli.add_typer(database, name="db")

Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        help="sqlite:///work.db or postgresql://… [env: RETOMA_DATABASE_URL]",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Id = Annotated[int, typer.Argument(metavar="ID", min=1, max=LARGEST)]
Before = Annotated[
    int | None,
    typer.Option(metavar="ID", min=1, max=LARGEST, help="Older than this id: the next page."),
]
Name = Annotated[str, typer.Argument(metavar="NAME")]
Why = Annotated[str, typer.Option(help="The reason; it is shown and kept.")]
Thing = Annotated[str, typer.Argument(metavar="THING")]
Things = Annotated[list[str], typer.Argument(metavar="THING…")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Run every step again; nothing is kept.")]
Codes = Annotated[
    list[str] | None,
    typer.Option(metavar="CODE", help="Only those with this code; may be given several times."),
]
Limit = Annotated[int, typer.Option(min=1, max=200, help="How many at most.")]
Who = Annotated[str, typer.Argument(metavar="PERSON")]
Key = Annotated[str, typer.Argument(metavar="KEY")]
Role = Annotated[str, typer.Option(help="viewer, operator or admin.")]


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


# — working —


@cli.command()
def runner(
    app: Annotated[
        str, typer.Option("--app", metavar="MODULE:NAME", help="Where your Retoma is.")
    ],
    processes: Annotated[int, typer.Option(min=1, max=1024, help="Runner processes.")] = 1,
    slots: Annotated[
        int | None,
        typer.Option(min=1, help="Jobs at a time in each process. [env: RETOMA_SLOTS]"),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="What to call it. [env: RETOMA_RUNNER_NAME]")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option("--database", metavar="URL", help="Instead of the one the app names."),
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Leave when nothing waits any more.")
    ] = False,
    with_parent: Annotated[bool, typer.Option("--leave-with-parent", hidden=True)] = False,
) -> None:
    """Claim jobs and run them, until told to stop (SIGTERM or Ctrl-C: drain, then leave)."""
    from retoma.cli.exits import leave_in_order, stay

    leave_in_order()
    stay()
    from retoma.cli.runner import Wanted, run

    run(
        Wanted(
            app=app,
            processes=processes,
            slots=slots,
            name=name,
            database=database,
            until_idle=until_idle,
            with_parent=with_parent,
        )
    )


@cli.command()
def serve(
    app: Annotated[
        str | None,
        typer.Option(
            "--app",
            metavar="MODULE:NAME",
            help="Where your Retoma is: its jobs can be submitted.",
        ),
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Where to listen. [env: RETOMA_SERVE_HOST]")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="0: a free one. [env: RETOMA_SERVE_PORT]"),
    ] = None,
    database: Database = None,
    link: Annotated[
        bool, typer.Option("--link/--no-link", help="Print a sign-in link, good once.")
    ] = True,
    with_parent: Annotated[bool, typer.Option("--leave-with-parent", hidden=True)] = False,
) -> None:
    """Serve the API, until told to stop (SIGTERM or Ctrl-C)."""
    from retoma.cli.exits import leave_in_order, stay

    leave_in_order()
    stay()
    from retoma.cli.serve import Wanted, run

    run(
        Wanted(
            app=app,
            host=host,
            port=port,
            database=database,
            link=link,
            with_parent=with_parent,
        )
    )


@cli.command()
def demo(
    fast: Annotated[
        bool, typer.Option("--fast", help="A smaller world: a few seconds.")
    ] = False,
    json: AsJson = False,
    seed: Annotated[int, typer.Option(help="Which world.")] = 1,
) -> None:
    """A batch at work on this machine: a runner is killed in the middle, nothing is lost."""
    from retoma.cli.demo import run
    from retoma.cli.exits import stay

    stay()
    run(fast=fast, as_json=json, seed=seed)


@cli.command()
def up(
    seed: Annotated[int, typer.Option(help="Which world.")] = 1,
) -> None:
    """The world of the demo, kept running until Ctrl-C; the next `up` goes on from there."""
    from retoma.cli.exits import stay
    from retoma.cli.up import run

    stay()
    run(seed=seed)


# — the whole —


@runners.callback(invoke_without_command=True)
def runners_list(
    context: typer.Context,
    every: Annotated[
        bool, typer.Option("--all", help="Those that are gone or lost too.")
    ] = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Who runs jobs: slots in use, last beat, kinds it knows."""
    if context.invoked_subcommand is not None:
        return
    from retoma.cli.runners import list_

    list_(database, json, every=every)


@runners.command("drain")
def runners_drain(
    runner: Annotated[str, typer.Argument(help="Its boot, the beginning of it, or its name.")],
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Ask a runner to leave as on SIGTERM; its jobs are finished or given back."""
    from retoma.cli.runners import drain

    drain(database, json, runner)


@cli.command("doctor")
def examine(database: Database = None, json: AsJson = False) -> None:
    """Look for what may be wrong, and say what to do about it. Changes nothing."""
    from retoma.cli.doctor import doctor

    doctor(database, json)


# — jobs —


@jobs.command("list")
def jobs_list(
    state: Annotated[str | None, typer.Option(help="Only jobs in this state.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only jobs of this kind.")] = None,
    batch: Annotated[
        int | None, typer.Option(metavar="ID", min=1, max=LARGEST, help="Only of this batch.")
    ] = None,
    before: Before = None,
    limit: Limit = 50,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Newest first, a page at a time."""
    from retoma.cli.jobs import list_

    list_(database, json, state=state, kind=kind, batch=batch, before=before, limit=limit)


@jobs.command("show")
def jobs_show(id: Id, database: Database = None, json: AsJson = False) -> None:
    """Everything that is known of one job: its steps, its attempts, its timeline."""
    from retoma.cli.jobs import show

    show(database, json, id)


@jobs.command("explain")
def jobs_explain(id: Id, database: Database = None, json: AsJson = False) -> None:
    """Why it is not running, in one sentence, and what would change it."""
    from retoma.cli.jobs import explain

    explain(database, json, id)


@jobs.command("retry")
def jobs_retry(
    id: Id, fresh: Fresh = False, database: Database = None, json: AsJson = False
) -> None:
    """Try an ended job again with a fresh budget; committed steps are kept."""
    from retoma.cli.jobs import retry

    retry(database, json, id, fresh=fresh)


@jobs.command("cancel")
def jobs_cancel(id: Id, database: Database = None, json: AsJson = False) -> None:
    """End a job that has not ended; a running one ends at its next step."""
    from retoma.cli.jobs import cancel

    cancel(database, json, id)


@jobs.command("send-again")
def jobs_send_again(id: Id, database: Database = None, json: AsJson = False) -> None:
    """Say that what a parked job had begun is gone, or never was: it is done anew."""
    from retoma.cli.jobs import send_again

    send_again(database, json, id)


@jobs.command("adopt")
def jobs_adopt(
    id: Id,
    found: Annotated[
        str, typer.Argument(metavar="JSON", help="The handle of its remote work, or a value.")
    ],
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Say what became of what a parked job had begun: it goes on with that."""
    from retoma.cli.jobs import adopt

    adopt(database, json, id, found)


@jobs.command("logs")
def jobs_logs(
    id: Id,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")
    ] = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """The timeline of a job, a line for each event; with --follow and --json, JSON lines."""
    from retoma.cli.jobs import logs

    logs(database, json, id, follow=follow)


@jobs.command("counts")
def jobs_counts(
    batch: Annotated[
        int | None, typer.Option(metavar="ID", min=1, max=LARGEST, help="Only of this batch.")
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """How many jobs of each kind are in each state."""
    from retoma.cli.overview import counts

    counts(database, json, batch=batch)


@jobs.command("funnel")
def jobs_funnel(
    kind: Annotated[str | None, typer.Option(help="Only jobs of this kind.")] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """How many run, or are parked, at which checkpoint, and since when."""
    from retoma.cli.overview import funnel

    funnel(database, json, kind=kind)


@jobs.command("stuck")
def jobs_stuck(
    quiet: Annotated[str, typer.Option(help="Without progress for so long: 90s, 10m.")] = "10m",
    limit: Limit = 50,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """What runs without progress, or on a runner whose lease is over."""
    from retoma.cli.overview import stuck

    stuck(database, json, quiet=quiet, limit=limit)


@jobs.command("pace")
def jobs_pace(
    last: Annotated[str, typer.Option(help="How far back: 15m, 6h.")] = "1h",
    kind: Annotated[str | None, typer.Option(help="Only jobs of this kind.")] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """What moved, minute by minute, and how long attempts took."""
    from retoma.cli.overview import pace

    pace(database, json, last=last, kind=kind)


# — batches —


@batches.command("list")
def batches_list(
    before: Before = None, limit: Limit = 50, database: Database = None, json: AsJson = False
) -> None:
    """Newest first, with how far each one is."""
    from retoma.cli.batches import list_

    list_(database, json, before=before, limit=limit)


@batches.command("show")
def batches_show(id: Id, database: Database = None, json: AsJson = False) -> None:
    """How many of its jobs are in each state."""
    from retoma.cli.batches import show

    show(database, json, id)


@batches.command("watch")
def batches_watch(id: Id, database: Database = None, json: AsJson = False) -> None:
    """A progress bar, until every job of it has ended."""
    from retoma.cli.batches import watch

    watch(database, json, id)


@batches.command("resume")
def batches_resume(id: Id, database: Database = None, json: AsJson = False) -> None:
    """Its parked jobs go on where they stopped."""
    from retoma.cli.batches import resume

    resume(database, json, id)


@batches.command("retry-failed")
def batches_retry_failed(
    id: Id, code: Codes = None, database: Database = None, json: AsJson = False
) -> None:
    """Try its dead jobs again with a fresh budget; committed steps are kept."""
    from retoma.cli.batches import retry_failed

    retry_failed(database, json, id, code or [])


@batches.command("again")
def batches_again(
    id: Id, fresh: Fresh = False, database: Database = None, json: AsJson = False
) -> None:
    """Run every job of it that has ended once more, however it ended."""
    from retoma.cli.batches import again

    again(database, json, id, fresh=fresh)


@batches.command("skip")
def batches_skip(
    id: Id,
    why: Annotated[str, typer.Option(help="The reason; it stands in each timeline.")],
    job: Annotated[
        int | None, typer.Option(metavar="ID", min=1, max=LARGEST, help="Only this job.")
    ] = None,
    code: Codes = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """End one job of it, or those that failed with a code, without doing them."""
    from retoma.cli.batches import skip

    skip(database, json, id, why=why, job=job, codes=code or [])


@batches.command("pause")
def batches_pause(id: Id, database: Database = None, json: AsJson = False) -> None:
    """Start no more of its jobs; what runs ends."""
    from retoma.cli.batches import pause

    pause(database, json, id)


@batches.command("unpause")
def batches_unpause(id: Id, database: Database = None, json: AsJson = False) -> None:
    """Let it go on where it was paused."""
    from retoma.cli.batches import unpause

    unpause(database, json, id)


@batches.command("cancel")
def batches_cancel(id: Id, database: Database = None, json: AsJson = False) -> None:
    """End every job of it that has not ended; running ones end at their next step."""
    from retoma.cli.batches import cancel

    cancel(database, json, id)


# — dead letters —


@dead.command("list")
def dead_list(
    kind: Annotated[str | None, typer.Option(help="Only jobs of this kind.")] = None,
    batch: Annotated[
        int | None, typer.Option(metavar="ID", min=1, max=LARGEST, help="Only of this batch.")
    ] = None,
    code: Annotated[str | None, typer.Option(help="Only those with this code.")] = None,
    before: Before = None,
    limit: Limit = 50,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Dead letters that nobody has discarded, newest first."""
    from retoma.cli.dead import list_

    list_(database, json, kind=kind, batch=batch, code=code, before=before, limit=limit)


@dead.command("show")
def dead_show(id: Id, database: Database = None, json: AsJson = False) -> None:
    """Why it is dead: the error, its stack, what to do."""
    from retoma.cli.dead import show

    show(database, json, id)


@dead.command("retry")
def dead_retry(
    id: Id, fresh: Fresh = False, database: Database = None, json: AsJson = False
) -> None:
    """Try a dead job again with a fresh budget; committed steps are kept."""
    from retoma.cli.dead import retry

    retry(database, json, id, fresh=fresh)


@dead.command("discard")
def dead_discard(
    id: Id,
    why: Annotated[str | None, typer.Option(help="A reason, for the timeline.")] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Put a dead letter away: off this list, its history kept."""
    from retoma.cli.dead import discard

    discard(database, json, id, why=why)


# — limits —


@limits.command("list")
def limits_list(
    after: Annotated[str, typer.Option(help="After this key: the next page.")] = "",
    limit: Limit = 50,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Every limit by its key: how many may run, and how many do."""
    from retoma.cli.limits import list_

    list_(database, json, after=after, limit=limit)


@limits.command("set")
def limits_set(
    key: Annotated[str, typer.Argument(metavar="KEY")],
    cap: Annotated[
        int | None, typer.Option(min=1, help="How many at once; without it, as the code says.")
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Let so many run at once, over what the code says."""
    from retoma.cli.limits import set_

    set_(database, json, key, cap)


# — pools, rates, breakers —


@pools.command("list")
def pools_list(database: Database = None, json: AsJson = False) -> None:
    """Every pool: how many things it has, how many are on, how many are held."""
    from retoma.cli.pools import list_

    list_(database, json)


@pools.command("show")
def pools_show(name: Name, database: Database = None, json: AsJson = False) -> None:
    """The things of a pool: who holds them, how they fare. Not what they are."""
    from retoma.cli.pools import show

    show(database, json, name)


@pools.command("on")
def pools_on(
    name: Name, things: Things, why: Why, database: Database = None, json: AsJson = False
) -> None:
    """Switch things of a pool on, all of them or none."""
    from retoma.cli.pools import switch

    switch(database, json, name, things, on=True, why=why)


@pools.command("off")
def pools_off(
    name: Name, things: Things, why: Why, database: Database = None, json: AsJson = False
) -> None:
    """Switch things of a pool off, all of them or none: nobody is given them."""
    from retoma.cli.pools import switch

    switch(database, json, name, things, on=False, why=why)


@pools.command("free")
def pools_free(
    name: Name, thing: Thing, database: Database = None, json: AsJson = False
) -> None:
    """Say that the use of a thing has ended, whoever holds it."""
    from retoma.cli.pools import free

    free(database, json, name, thing)


@rates.command("list")
def rates_list(database: Database = None, json: AsJson = False) -> None:
    """Every rate by its key."""
    from retoma.cli.rates import list_

    list_(database, json)


@rates.command("set")
def rates_set(
    key: Annotated[str, typer.Argument(metavar="KEY")],
    per_second: Annotated[float, typer.Argument(metavar="PER_SECOND")],
    burst: Annotated[
        float | None, typer.Option(help="How many at once; without it, a second's worth.")
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Let so many calls a second through, from now on."""
    from retoma.cli.rates import set_

    set_(database, json, key, per_second, burst)


@breakers.command("list")
def breakers_list(database: Database = None, json: AsJson = False) -> None:
    """Every breaker: open or closed, since when, why, when it is tried next."""
    from retoma.cli.breakers import list_

    list_(database, json)


@breakers.command("open")
def breakers_open(
    name: Name, why: Why, database: Database = None, json: AsJson = False
) -> None:
    """Let nobody through; one job tries it after its rest, and closes it if that works."""
    from retoma.cli.breakers import open_

    open_(database, json, name, why=why)


@breakers.command("close")
def breakers_close(name: Name, database: Database = None, json: AsJson = False) -> None:
    """Let all through again, now."""
    from retoma.cli.breakers import close

    close(database, json, name)


# — costs —


Batch = Annotated[int | None, typer.Option(metavar="ID", min=1, max=LARGEST)]
Provider = Annotated[str | None, typer.Option(metavar="NAME", help="Whom it is paid to.")]
Application = Annotated[
    str | None, typer.Option(metavar="NAME", help="For what its kinds say they work.")
]
Per = Annotated[str | None, typer.Option(metavar="day|month", help="Not of a batch.")]
Since = Annotated[
    str | None, typer.Option(metavar="DATE", help="From when on; without it from now.")
]


@cli.command()
def costs(
    by: Annotated[
        str, typer.Option(metavar="provider|kind|application|day", help="Told by what.")
    ] = "provider",
    days: Annotated[int, typer.Option(min=1, max=1000, help="How many, with --by day.")] = 30,
    job: Annotated[int | None, typer.Option(metavar="ID", min=1, max=LARGEST)] = None,
    batch: Batch = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """What was spent and saved: of everything, of one job or of one batch."""
    from retoma.cli.costs import costs as told

    told(database, json, by=by, days=days, job=job, batch=batch)


@budgets.command("list")
def budgets_list(
    after: Annotated[str, typer.Option(metavar="GATE", help="The next page.")] = "",
    limit: Limit = 50,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Every budget: how much of it is spent in its period, and whether jobs wait for it."""
    from retoma.cli.budgets import list_

    list_(database, json, after=after, limit=limit)


@budgets.command("set")
def budgets_set(
    amount: Annotated[str, typer.Argument(metavar="AMOUNT", help="Such as '25 USD'.")],
    batch: Batch = None,
    provider: Provider = None,
    application: Application = None,
    per: Per = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Let so much be spent, from now on; who waits goes on if something is left."""
    from retoma.cli.budgets import set_

    whose = {"batch": batch, "provider": provider, "application": application, "per": per}
    set_(database, json, amount, **whose)


@budgets.command("remove")
def budgets_remove(
    batch: Batch = None,
    provider: Provider = None,
    application: Application = None,
    per: Per = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Bound it no more; who waits goes on."""
    from retoma.cli.budgets import remove

    whose = {"batch": batch, "provider": provider, "application": application, "per": per}
    remove(database, json, **whose)


@prices.command("list")
def prices_list(
    provider: Provider = None, database: Database = None, json: AsJson = False
) -> None:
    """Every price: the shipped ones, and those that were set, also for later."""
    from retoma.cli.prices import list_

    list_(database, json, provider=provider)


@prices.command("set")
def prices_set(
    provider: Annotated[str, typer.Argument(metavar="PROVIDER")],
    unit: Annotated[str, typer.Argument(metavar="UNIT", help="Such as input_tokens.")],
    price: Annotated[str, typer.Argument(metavar="PRICE")],
    model: Annotated[str, typer.Option(help="Without it, of all its models.")] = "",
    currency: Annotated[str, typer.Option(metavar="USD|BRL")] = "USD",
    per: Annotated[int, typer.Option(min=1, help="For how many units.")] = 1,
    since: Since = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Say what a unit costs."""
    from retoma.cli.prices import set_

    how: dict[str, Any] = {"model": model, "currency": currency, "per": per, "since": since}
    set_(database, json, provider, unit, price, **how)


@prices.command("import")
def prices_import(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="TOML: tables [[price]].")],
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Read a list of prices in, all of it or nothing."""
    from retoma.cli.prices import import_

    import_(database, json, file)


@prices.command("exchange")
def prices_exchange(
    rate: Annotated[str, typer.Argument(metavar="REAIS", help="That a dollar is.")],
    since: Since = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Say how many reais a dollar is."""
    from retoma.cli.prices import exchange

    exchange(database, json, rate, since=since)


@reuse.command("list")
def reuse_list(
    kind: Annotated[str | None, typer.Option()] = None,
    step: Annotated[str | None, typer.Option()] = None,
    limit: Limit = 50,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """What may be used again, newest first: of which step, made of what, by which job."""
    from retoma.cli.reuse import list_

    list_(database, json, kind=kind, step=step, limit=limit)


@reuse.command("forget")
def reuse_forget(
    kind: Annotated[str | None, typer.Option()] = None,
    step: Annotated[str | None, typer.Option()] = None,
    version: Annotated[int | None, typer.Option(min=1)] = None,
    key: Annotated[str | None, typer.Option(metavar="JSON")] = None,
    before: Annotated[str | None, typer.Option(metavar="DATE", help="Made before it.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All there are.")] = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Have results made anew when they are next wanted; what jobs have read stays theirs."""
    from retoma.cli.reuse import forget

    which: dict[str, Any] = {"kind": kind, "step": step, "version": version, "key": key}
    forget(database, json, **which, before=before, everything=everything)


# — schedules —


@schedules.command("list")
def schedules_list(database: Database = None, json: AsJson = False) -> None:
    """Every schedule: when it ticks, its last job, whether it is paused."""
    from retoma.cli.schedules import list_

    list_(database, json)


@schedules.command("pause")
def schedules_pause(name: Name, database: Database = None, json: AsJson = False) -> None:
    """It ticks no more until it is unpaused."""
    from retoma.cli.schedules import pause

    pause(database, json, name)


@schedules.command("unpause")
def schedules_unpause(name: Name, database: Database = None, json: AsJson = False) -> None:
    """It goes on with its next tick; those of the pause are not made up for."""
    from retoma.cli.schedules import unpause

    unpause(database, json, name)


@schedules.command("run")
def schedules_run(name: Name, database: Database = None, json: AsJson = False) -> None:
    """One run now, beside its ticks."""
    from retoma.cli.schedules import run

    run(database, json, name)


# — who may come in, and what they must not see —


@keys.command("create")
def keys_create(
    person: Who,
    role: Role = "viewer",
    label: Annotated[str, typer.Option(help="What it is for.")] = "",
    expires: Annotated[
        str | None, typer.Option(help="How long it is good: 90d. Else until it is revoked.")
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """A key for a person, who is written down if new. Its token is shown this once."""
    from retoma.cli.keys import create

    create(database, json, person, role=role, label=label, expires=expires)


@keys.command("list")
def keys_list(
    every: Annotated[bool, typer.Option("--all", help="Those that were revoked too.")] = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Keys, newest first: whose, what they allow, when they were last used."""
    from retoma.cli.keys import list_

    list_(database, json, every=every)


@keys.command("revoke")
def keys_revoke(key: Key, database: Database = None, json: AsJson = False) -> None:
    """It opens nothing from now on."""
    from retoma.cli.keys import revoke

    revoke(database, json, key)


@keys.command("rotate")
def keys_rotate(
    key: Key,
    overlap: Annotated[str, typer.Option(help="How long the old one is good still.")] = "24h",
    database: Database = None,
    json: AsJson = False,
) -> None:
    """A new key with the rights of an old one, which ends with the overlap."""
    from retoma.cli.keys import rotate

    rotate(database, json, key, overlap=overlap)


@people.command("list")
def people_list(database: Database = None, json: AsJson = False) -> None:
    """Everybody who may come in, by name."""
    from retoma.cli.people import list_

    list_(database, json)


@people.command("invite")
def people_invite(
    person: Who,
    role: Role = "viewer",
    expires: Annotated[str, typer.Option(help="How long the link is good.")] = "1h",
    database: Database = None,
    json: AsJson = False,
) -> None:
    """A link that signs somebody in, once. Whoever is called so has this role from now on."""
    from retoma.cli.people import invite

    invite(database, json, person, role=role, expires=expires)


@people.command("remove")
def people_remove(person: Who, database: Database = None, json: AsJson = False) -> None:
    """Every key, link and session of theirs is over, at once."""
    from retoma.cli.people import remove

    remove(database, json, person)


@people.command("sessions")
def people_sessions(database: Database = None, json: AsJson = False) -> None:
    """Who is signed in with a browser, and since when."""
    from retoma.cli.people import sessions

    sessions(database, json)


@people.command("sign-out")
def people_sign_out(
    session: Annotated[str, typer.Argument(metavar="SESSION")],
    database: Database = None,
    json: AsJson = False,
) -> None:
    """A session is over, at once."""
    from retoma.cli.people import sign_out

    sign_out(database, json, session)


@secrets.command("list")
def secrets_list(database: Database = None, json: AsJson = False) -> None:
    """Which rows have a secret, where it lies, and who set it."""
    from retoma.cli.secrets import list_

    list_(database, json)


@secrets.command("rotate")
def secrets_rotate(database: Database = None, json: AsJson = False) -> None:
    """Seal every secret with a new key, then forget the old one. Interrupted, it goes on."""
    from retoma.cli.secrets import rotate

    rotate(database, json)


# — the schema —


@database.command("upgrade")
def db_upgrade(database: Database = None, json: AsJson = False) -> None:
    """Bring the schema to what this retoma needs. Safe at any time, by any number at once."""
    from retoma.cli.db import upgrade

    upgrade(database, json)


@database.command("status")
def db_status(database: Database = None, json: AsJson = False) -> None:
    """Which migrations are applied, and which are not yet. Changes nothing."""
    from retoma.cli.db import status

    status(database, json)


@database.command("downgrade")
def db_downgrade(
    to: Annotated[int, typer.Option(min=0, help="The last migration to keep; 0: none.")],
    yes: Annotated[bool, typer.Option("--yes", help="Yes, drop what is above it.")] = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Undo migrations, newest first. What they hold is dropped: asks for --yes."""
    from retoma.cli.db import downgrade

    downgrade(database, json, to=to, yes=yes)


@database.command("sql")
def db_sql(
    dialect: Annotated[
        str | None, typer.Option(help="sqlite or postgres; else that of the database's URL.")
    ] = None,
    above: Annotated[int, typer.Option(min=0, help="Only migrations above this one.")] = 0,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Print what `upgrade` would run, for those who apply SQL by hand. Opens no database."""
    from retoma.cli.db import sql

    sql(database, json, dialect=dialect, above=above)
