"""Show and change settings, live settings included."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from pydantic import AliasChoices, SecretStr

from retoma import settings
from retoma.engine.rules.errors import IllegalMove
from retoma.engine.rules.live_settings import KnobSeen, Source
from retoma.library import Retoma
from retoma.secret import STARS, redact_text
from retoma.settings import Settings
from retoma.words import say

__all__ = ["KnobSeen", "Setting"]

PREFIX: Final = "RETOMA_"
LIVE: Final = frozenset(setting.name for setting in settings.LIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of this process. Secrets in its value are masked."""

    name: str
    variable: str | None  # its environment variable
    others: tuple[str, ...]  # environment variables of other systems that work too
    value: Any
    default: Any
    source: Source
    about: str
    live: bool  # it can change while processes run
    rule: str | None = None  # the allowed values of a live setting
    unit: str = ""
    changed_at: datetime | None = None
    changed_by: str | None = None

    @property
    def changes(self) -> bool:
        """Whether an admin may change it now."""
        return self.live and self.source in (Source.DEFAULT, Source.DATABASE)


async def list_settings(app: Retoma, chosen: Settings, *, every: bool = False) -> list[Setting]:
    """What each is, where that comes from, and who changed it."""
    live = {setting.name: setting for setting in await app.knobs.all()}
    own = [_own(chosen, name, live.pop(name, None)) for name in type(chosen).model_fields]
    seen = [*own, *(_of_application(setting) for setting in live.values())]
    return [setting for setting in seen if every or setting.live]


async def change_setting(app: Retoma, name: str, value: object, *, actor: str) -> KnobSeen:
    """Change a knob for all processes, which take it up while they run."""
    return await app.knobs.set(_live(name), value, actor=actor)


async def reset_setting(app: Retoma, name: str, *, actor: str) -> KnobSeen:
    """Its default holds again."""
    return await app.knobs.reset(_live(name), actor=actor)


def _live(given: str) -> str:
    """Return the name of a live setting; IllegalMove for a setting that needs a restart."""
    name = given.removeprefix(PREFIX).lower() if given.startswith(PREFIX) else given
    field = Settings.model_fields.get(name)
    if field is not None and name not in LIVE:
        raise IllegalMove(
            say(
                "{name} cannot change while a process runs: set {variable} in its environment and"
                " restart it; nothing was changed",
                name=name,
                variable=_names(field.validation_alias)[0],
            )
        )
    return name


def _own(chosen: Settings, name: str, seen: KnobSeen | None) -> Setting:
    about = type(chosen).model_fields[name]
    variable, *others = _names(about.validation_alias)
    fixed = chosen.source(name)
    stored = seen if seen is not None and fixed is Source.DEFAULT else None
    return Setting(
        name=name,
        variable=variable,
        others=tuple(others),
        value=_shown(getattr(chosen, name) if stored is None else stored.value),
        default=_shown(about.default),
        source=fixed if stored is None else stored.source,
        about=about.description or "",
        live=seen is not None,
        rule=None if seen is None else seen.knob.rule,
        unit="" if seen is None else seen.knob.unit,
        changed_at=None if stored is None else stored.changed_at,
        changed_by=None if stored is None else stored.changed_by,
    )


def _of_application(seen: KnobSeen) -> Setting:
    return Setting(
        name=seen.name,
        variable=None,
        others=(),
        value=seen.value,
        default=seen.default,
        source=seen.source,
        about=seen.knob.why,
        live=True,
        rule=seen.knob.rule,
        unit=seen.knob.unit,
        changed_at=seen.changed_at,
        changed_by=seen.changed_by,
    )


def _names(alias: Any) -> list[str]:
    return [str(name) for name in alias.choices] if isinstance(alias, AliasChoices) else [alias]


def _shown(value: Any) -> Any:
    """Mask secrets in a value, also within a URL."""
    if isinstance(value, SecretStr):
        return STARS
    if isinstance(value, StrEnum | str):
        return redact_text(str(value)) or None
    return value
