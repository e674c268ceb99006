"""`retoma settings`: every setting and knob, and a hand on those that change while processes run."""

from typing import Any

from retoma import settings
from retoma.cli.runner import load
from retoma.console.kit import ACTOR, ask, at, clean, console, print_json, table
from retoma.engine.rules.live_settings import KnobSeen
from retoma.library import Retoma
from retoma.manifest import application_of
from retoma.services import settings as panel
from retoma.services.settings import Setting
from retoma.words import say, speak, tell


def list_(database: str | None, as_json: bool, app: str | None, *, every: bool) -> None:
    chosen = settings.read(database_url=database)
    found = ask(database, lambda here: panel.settings_seen(_knowing(here, app), chosen))
    seen = [each for each in found if every or each.live]
    if as_json:
        print_json(seen)
        return
    page = table(
        speak("name"),
        speak("value"),
        speak("source"),
        speak("changes"),
        speak("changed"),
        speak("what"),
    )
    for each in seen:
        page.add_row(
            each.name,
            clean(_value(each.value, each.unit)),
            tell(str(each.source)),
            _changes(each),
            clean(f"{at(each.changed_at)} {each.changed_by or ''}".strip()),
            clean(tell(each.about)),
        )
    console().print(page)


def set_(database: str | None, as_json: bool, app: str | None, name: str, value: str) -> None:
    seen = ask(
        database, lambda here: panel.change(_knowing(here, app), name, value, actor=ACTOR)
    )
    _tell(seen, as_json)


def reset(database: str | None, as_json: bool, app: str | None, name: str) -> None:
    seen = ask(database, lambda here: panel.reset(_knowing(here, app), name, actor=ACTOR))
    _tell(seen, as_json)


def _knowing(here: Retoma, app: str | None) -> Retoma:
    """The database, with the settings of the applications that RETOMA_APPLICATIONS and `--app` name."""
    for name in filter(None, settings.read().applications.split(",")):
        application = application_of(name)
        here.knobs.declare(application.name, application.knobs)
    if app is not None:
        here.knobs.know(load(app).knobs)
    return here


def _tell(seen: KnobSeen, as_json: bool) -> None:
    if as_json:
        print_json({"name": seen.name, "value": seen.value, "source": seen.source})
        return
    value = clean(_value(seen.value, seen.knob.unit))
    print(speak("{name} is {value} from now on", name=seen.name, value=value))


def _value(value: Any, unit: str) -> str:
    if value in (None, ""):
        return tell(say("nothing"))
    text = f"{value:.15g}" if isinstance(value, float) else str(value)
    return f"{text} {tell(unit)}".strip()


def _changes(setting: Setting) -> str:
    if setting.changes:
        return speak("now")
    return speak("the environment holds") if setting.live else speak("with a restart")
