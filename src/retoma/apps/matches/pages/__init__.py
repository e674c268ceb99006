"""Matches in Mission Control, at `/matches`: seasons as a grid, a round live, a task with its evidence, repairs.

The words of addresses are the document's: a `rodada` is one scrape of a round, a `tarefa` one match of it.
"""

from retoma.apps.matches.pages import edits, games, home, replays, rounds, tasks
from retoma.web.pages.route import page_router

__all__ = ["routes"]

routes = page_router()
for each in (home, rounds, replays, edits, tasks, games):
    routes.include_router(each.routes)
