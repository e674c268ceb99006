"""What people have set of the knobs; each change is told in the audit log with what was there."""

from collections.abc import Mapping
from typing import Any

from retoma.codec import decode, encode
from retoma.db import Transaction, moment
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.live_settings import Declared, Knob, KnobSeen, Override, Source
from retoma.engine.store.rows import tell
from retoma.engine.store.verb import SQL


def value(tx: Transaction, declared: Declared, name: str) -> Any:
    """As it stands in this transaction."""
    return seen(tx, declared, name).value


def seen(tx: Transaction, declared: Declared, name: str) -> KnobSeen:
    knob = declared.of(name)
    if name in declared.fixed:
        return _stands(knob, declared.fixed, None)
    row = tx.one(SQL.get_knob, name=name)
    return _stands(knob, {}, None if row is None else _override(*row))


def list_knobs(tx: Transaction, declared: Declared) -> list[KnobSeen]:
    """All that this process knows, as they were told."""
    found = {name: _override(*rest) for name, *rest in tx.all(SQL.list_knobs)}
    return [_stands(each, declared.fixed, found.get(each.name)) for each in declared]


def values(tx: Transaction, declared: Declared) -> dict[str, Any]:
    return {each.name: each.value for each in list_knobs(tx, declared)}


def set_knob(
    tx: Transaction, declared: Declared, name: str, given: object, *, actor: str
) -> KnobSeen:
    """For all processes, from now on; nothing where it breaks a rule."""
    read = declared.free(name).read(given)
    before = _held(tx, declared)
    declared.rule(name, {**before, name: read})
    tx.run(SQL.set_knob, name=name, value=encode(read), actor=actor)
    _tell(tx, "knob.set", name, {"from": before[name], "to": read}, actor)
    return seen(tx, declared, name)


def reset_knob(tx: Transaction, declared: Declared, name: str, *, actor: str) -> KnobSeen:
    """Its default holds again; where nobody had set it, nothing happens."""
    knob = declared.free(name)
    before = _held(tx, declared)
    declared.rule(name, {**before, name: knob.default})
    if tx.run(SQL.unset_knob, name=name):
        _tell(tx, "knob.reset", name, {"from": before[name], "to": knob.default}, actor)
    return seen(tx, declared, name)


def _held(tx: Transaction, declared: Declared) -> dict[str, Any]:
    """What they are, while nobody else may change them: some only go together."""
    tx.all(SQL.lock_knobs)
    return values(tx, declared)


def _override(text: str, changed_at: Any, changed_by: str) -> Override:
    return Override(text, moment(changed_at), changed_by)


def _stands(knob: Knob, fixed: Mapping[str, Any], override: Override | None) -> KnobSeen:
    if knob.name in fixed:
        return KnobSeen(knob=knob, value=fixed[knob.name], source=Source.ENVIRONMENT)
    default = KnobSeen(knob=knob, value=knob.default, source=Source.DEFAULT)
    if override is None:
        return default
    try:
        read = knob.read(decode(override.value))
    except BadInput:
        return default  # what an older rule let in, and this one does not, counts for nothing
    return KnobSeen(
        knob=knob,
        value=read,
        source=Source.DATABASE,
        changed_at=override.changed_at,
        changed_by=override.changed_by,
    )


def _tell(tx: Transaction, verb_: str, name: str, details: dict[str, Any], actor: str) -> None:
    tell(tx, actor=actor, verb=verb_, subject=name, details=encode(details))
