"""Builds what lives, once, from settings; nothing else names the concrete parts."""

from pathlib import Path
from random import Random

from retoma.db import Database
from retoma.db.migrations import ENGINE, Room
from retoma.engine.ports import Clock, Ids
from retoma.engine.rules.errors import BadInput
from retoma.engine.traces import Traces
from retoma.library import Retoma, room_of
from retoma.manifest import Application, application_of
from retoma.outbound import Outbound
from retoma.secret import Secret
from retoma.settings import Settings
from retoma.toolkit.tools import Tools
from retoma.vault import Vault
from retoma.words import say


def build_retoma(
    settings: Settings,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
    rng: Random | None = None,
) -> Retoma:
    """A Retoma on the database the settings name."""
    made = Retoma(
        settings.database_url,
        clock=clock,
        ids=ids,
        rng=rng,
        evidence=settings.evidence,
        traces=build_traces(settings),
        public_views=settings.public_views,
    )
    made.knobs.fix(settings.fixed)
    return made


def install_applications(retoma: Retoma, settings: Settings) -> list[Application]:
    """Those that the settings name, each with its tools."""
    found = []
    for name in filter(None, settings.applications.split(",")):
        application = application_of(name)
        retoma.install(application, build_tools(retoma, settings))
        found.append(application)
    return found


def rooms_of(settings: Settings) -> list[Room]:
    """Whose tables there are: the engine's, and on them those of the applications that are named."""
    named = [application_of(name) for name in filter(None, settings.applications.split(","))]
    return [
        ENGINE,
        *(room_of(each, settings.public_views) for each in named if each.migrations),
    ]


def build_tools(retoma: Retoma, settings: Settings) -> Tools:
    key, file = settings.secret_key, settings.secret_key_file
    return Tools(
        retoma,
        Outbound(clock=retoma.clock),
        settings=settings,
        secret_key=None if key is None else Secret(key.get_secret_value()),
        key_file=None if file is None else Path(file),
    )


def build_traces(settings: Settings) -> Traces | None:
    """Where spans go; imported only where somebody wants them to go anywhere."""
    if not settings.traces:
        return None
    try:
        from retoma import otel  # noqa: PLC0415 — an extra, and slow to import
    except ImportError as error:
        raise BadInput(
            say(
                "RETOMA_TRACES={where} needs OpenTelemetry: pip install 'retoma[otel]'",
                where=settings.traces,
            )
        ) from error
    return otel.exporting(settings.traces)


def build_vault(settings: Settings, database: Database, ids: Ids) -> Vault:
    """The secrets of a database, with the keys that the settings name."""
    key, file = settings.secret_key, settings.secret_key_file
    return Vault(
        database,
        ids,
        key=None if key is None else Secret(key.get_secret_value()),
        key_file=None if file is None else Path(file),
    )
