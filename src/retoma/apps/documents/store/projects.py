"""Projects: a name, and the rules of executions to come."""

from dataclasses import dataclass
from datetime import datetime

from retoma import db
from retoma.apps.documents.model import ProjectRules, checked_rules
from retoma.apps.documents.store.rows import SQL, StoredRules, rules_text
from retoma.engine.rules.errors import BadInput, IllegalMove, NotFound
from retoma.engine.run.transaction import Transaction
from retoma.words import say


@dataclass(frozen=True, slots=True)
class Project:
    """As it is now."""

    id: int
    name: str
    rules: StoredRules
    created_by: str
    created_at: datetime | None


def add_project(tx: Transaction, name: str, rules: ProjectRules, *, actor: str) -> int:
    told = rules_text(checked_rules(rules))
    project = tx.one(
        SQL.add_project, into=int, name=_checked_name(name), rules=told, actor=actor
    )
    if project is None:
        raise _taken(name)
    tx.tell("documents.project_added", f"projeto {project}", actor=actor)
    return project


def change_project(
    tx: Transaction, project: int, name: str, rules: ProjectRules, *, actor: str
) -> None:
    """For executions to come; those that are there go on by the rules they began with."""
    told = rules_text(checked_rules(rules))
    if tx.one(SQL.project_by_name, into=int, name=_checked_name(name)) not in (None, project):
        raise _taken(name)
    if tx.one(SQL.change_project, project=project, name=name, rules=told) is None:
        raise _unknown(project)
    tx.tell("documents.project_changed", f"projeto {project}", actor=actor)


def remove_project(tx: Transaction, project: int, *, actor: str) -> None:
    """No more executions of it; what was classified stays."""
    if tx.one(SQL.remove_project, project=project) is None:
        raise _unknown(project)
    tx.tell("documents.project_removed", f"projeto {project}", actor=actor)


def project_of(tx: db.Transaction, project: int) -> Project:
    found = tx.one(SQL.get_project, into=Project, project=project)
    if found is None:
        raise _unknown(project)
    return found


def find_project(tx: db.Transaction, name: str) -> int:
    """Which is called so."""
    project = tx.one(SQL.project_by_name, into=int, name=name)
    if project is None:
        raise NotFound(say("there is no project {name!r}", name=name))
    return project


def list_projects(tx: db.Transaction, *, before: int | None, n: int) -> list[Project]:
    return tx.all(SQL.list_projects, into=Project, before=before, n=n)


def models_of(tx: db.Transaction) -> set[str]:
    """The models that the newest projects name."""
    found = list_projects(tx, before=None, n=200)
    return {each.rules.model for each in found if each.rules.model}


def _checked_name(name: str) -> str:
    if not name.strip() or not name.isprintable():
        raise BadInput(say("a project needs a printable name"))
    return name


def _unknown(project: int) -> NotFound:
    return NotFound(say("there is no project {project}", project=project))


def _taken(name: str) -> IllegalMove:
    return IllegalMove(say("there is a project {name!r} already", name=name))
