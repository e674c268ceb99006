"""A house with the documents application in it, whose documents end as their names say."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from retoma import Retoma
from retoma.apps.documents import APP, store
from retoma.apps.documents.model import CODES, KIND, Classified, Label, ProjectRules
from retoma.apps.documents.steps import OPENROUTER
from retoma.apps.documents.store.documents import Which
from retoma.apps.documents.store.executions import Ask, NewDocument, Stand
from retoma.apps.tools import Tools
from retoma.codec import digest
from retoma.db import adhoc
from retoma.engine import store as engine
from retoma.engine.context import Context
from retoma.engine.errors import Permanent, Transient
from retoma.engine.kind import Kind, job
from retoma.engine.ports import Process
from retoma.engine.retry import Retry
from retoma.engine.store import Boot
from retoma.engine.transaction import Transaction
from retoma.outbound import Outbound
from retoma.settings import Settings
from retoma.testing import FakeClock, drain
from tests.engine.aids import change

WHO = "ana"
RULES = ProjectRules(labels=(Label("petição", "um pedido"), Label("sentença", "uma decisão")))
# The same story for every test that is not about the story itself: no child, no model.
TOLD = replace(APP, stories="tests.apps.documents.aids:stories", mend=None, schedules=())


def stories(tools: Tools) -> list[Kind]:
    """A document ends as its name says: `corrupt.pdf`, `stumble.pdf`, `slow-90.pdf` in its time."""

    @job(
        name=KIND,
        application="documents",
        codes=CODES,
        retry=Retry(attempts=3, base=5.0, cap=300.0, jitter=0),
    )
    async def document(ctx: Context, ask: Ask) -> Classified:
        database = await tools.retoma.database()
        wanted = await database.read(lambda tx: store.documents.wanted_of(tx, ask.document))
        code = wanted.name.partition(".")[0].partition("-")[0]
        if code == "slow":  # slow-90.pdf: so many seconds
            await tools.retoma.clock.sleep(float(wanted.name.partition(".")[0][5:]))
        if code == "stumble":
            raise Transient("o modelo tropeçou", code="bad_answer")
        if code == "key":
            raise Permanent("falta a chave", code="no_key")
        if code in CODES and ctx.generation == 1:
            raise Permanent(CODES[code].meaning, code=code)
        return Classified(wanted.rules.names[0], 0.9, "porque sim", "m")

    return [document.kind]  # type: ignore[attr-defined]


def keep(tx: Transaction, papers: Sequence[NewDocument]) -> None:
    """Bytes for each, of its size; nobody here reads them."""
    for each in papers:
        if not store.contents.begin(tx, each.sha256, each.size):
            store.contents.keep(tx, each.sha256, 0, [b"x" * each.size])
            store.contents.end(tx, each.sha256)


def paper(code: str, name: str | None = None, content: str | None = None) -> NewDocument:
    told = content or code
    return NewDocument(code, name or f"{code}.pdf", digest(told), len(told))


@dataclass(frozen=True, slots=True)
class House:
    """One house."""

    app: Retoma

    async def project(self, name: str = "PGE", rules: ProjectRules = RULES) -> int:
        return await self.app.write(
            lambda tx: store.projects.add_project(tx, name, rules, actor=WHO)
        )

    async def execution(
        self,
        papers: Sequence[NewDocument],
        rules: ProjectRules = RULES,
        *,
        name: str = "PGE",
    ) -> int:
        project = await self.project(name, rules)
        await self.app.write(lambda tx: keep(tx, papers))
        return await self.app.write(
            lambda tx: store.executions.add_execution(tx, project, papers, actor=WHO)
        )

    async def drained(self) -> None:
        await drain(self.app)

    async def seen(self, execution: int) -> dict[str, Any]:
        database = await self.app.database()
        return await database.read(lambda tx: store.executions.execution_seen(tx, execution))

    async def stand(self, execution: int) -> Stand:
        database = await self.app.database()
        return await database.read(lambda tx: store.executions.stand_of(tx, execution))

    async def results(self, execution: int) -> list[dict[str, Any]]:
        database = await self.app.database()
        return await database.read(
            lambda tx: store.documents.list_results(tx, execution, Which(), after=0, n=10_000)
        )

    async def rows(self, sql: str, **params: Any) -> list[Any]:
        database = await self.app.database()
        return await database.read(lambda tx: tx.all(adhoc(sql), **params))

    async def change(self, sql: str) -> None:
        await change(await self.app.database(), sql)

    async def left_by_a_dead_runner(self, execution: int, n: int = 1) -> None:
        """The first documents are held by a runner whose lease is over, and nobody else lives."""
        await self.booted("dead", -1)
        await self.held_by("dead", execution, n)

    async def booted(self, boot: str, lease: float, slots: int = 10) -> None:
        me = Boot(
            id=boot,
            name=boot,
            process=Process("elsewhere", 1, "1"),
            version="",
            slots=slots,
            knows=("documents.document@1",),
        )
        database = await self.app.database()
        await database.write(lambda tx: engine.boot_runner(tx, me, 60.0), verb="boot")
        await self.change(
            f"UPDATE runners SET lease_until = clock_in({lease}) WHERE boot = '{boot}'"  # noqa: S608
        )

    async def idle_runner(self) -> None:
        """One that lives and takes nothing: somebody could go on."""
        await self.booted("idle", 86_400)

    async def held_by_nobody(self, execution: int) -> None:
        """Begun once, and waiting since."""
        await self.change(f"UPDATE jobs SET epoch = 1 WHERE batch = {execution}")  # noqa: S608

    async def held_by(self, boot: str, execution: int, n: int = 1) -> None:
        """As a claim would, without a story: `n` documents that wait."""
        jobs = "SELECT id FROM jobs WHERE batch = {} AND state = 'waiting' ORDER BY id LIMIT {}"
        held = [id_ for (id_,) in await self.rows(jobs.format(execution, n))]
        listed = ", ".join(str(each) for each in held)
        for table in (
            "UPDATE jobs SET state = 'running', runner = '{boot}', epoch = epoch + 1, turn = NULL,"
            " failures = failures + 1, started_at = (SELECT clock()), run_at = NULL"
            " WHERE id IN ({listed})",
            "INSERT INTO tallies (batch, kind, from_state, to_state, minute, n)"
            " VALUES ({execution}, '{kind}', 'waiting', 'running', (SELECT clock()), {n})",
        ):
            told = {"boot": boot, "listed": listed, "execution": execution, "n": n}
            await self.change(table.format(kind=KIND, **told))


@asynccontextmanager
async def house(url: str, application: Any = TOLD, **settings: Any) -> AsyncIterator[House]:
    async with (
        Retoma(url, clock=FakeClock()) as app,
        Outbound(private=frozenset({"127.0.0.1"})) as out,
    ):
        app.install(
            application, Tools(app, out, settings=Settings(database_url=url, **settings))
        )
        # By this clock nobody waits for a rate that is looked for.
        await app.rates.set(OPENROUTER, 10_000)
        yield House(app)
