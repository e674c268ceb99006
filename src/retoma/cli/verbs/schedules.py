"""`retoma schedules …`"""

from retoma.console.options import AsJson, Database, Name, group

schedules = group("What is submitted by the clock.")


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
