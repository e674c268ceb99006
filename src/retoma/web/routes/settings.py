"""`/api/settings`: every setting and knob, and those that change while processes run."""

from typing import Annotated

from fastapi import Path

from retoma.engine.rules.errors import NotFound
from retoma.services import settings
from retoma.web.house import AHouse, House
from retoma.web.route import router
from retoma.web.sign_in import Admin
from retoma.web.wire import NewValue, SettingShown
from retoma.words import say

routes = router("settings")

SettingName = Annotated[
    str,
    Path(
        min_length=1,
        max_length=200,
        description="The name of a knob; an application's begins with its own.",
    ),
]


@routes.get("/api/settings")
async def list_settings(_: Admin, house: AHouse) -> list[SettingShown]:
    """Every one of them: its value for this server, where that comes from, whether it changes."""
    seen = await settings.list_settings(house.retoma, house.settings, every=True)
    return [SettingShown.model_validate(each) for each in seen]


@routes.put("/api/settings/{name}")
async def change_setting(
    name: SettingName, body: NewValue, who: Admin, house: AHouse
) -> SettingShown:
    """Change a knob for all processes, which take it up while they run."""
    changed = await settings.change_setting(house.retoma, name, body.value, actor=who.name)
    return await _shown(house, changed.name)


@routes.delete("/api/settings/{name}")
async def reset_setting(name: SettingName, who: Admin, house: AHouse) -> SettingShown:
    """Its default holds again; where nobody had changed it, nothing happens."""
    changed = await settings.reset_setting(house.retoma, name, actor=who.name)
    return await _shown(house, changed.name)


async def _shown(house: House, name: str) -> SettingShown:
    for each in await settings.list_settings(house.retoma, house.settings, every=True):
        if each.name == name:
            return SettingShown.model_validate(each)
    raise NotFound(say("no knob is called {name!r}; nothing was changed", name=name))
