"""What lost runners leave behind, and the counters. Recovery is not a job: it cannot be stuck in
the queue it watches over. Nothing here stops because one row is bad."""

from dataclasses import dataclass

from retoma.codec import encode
from retoma.db import Database, Transaction
from retoma.engine import store
from retoma.engine.log import get_logger
from retoma.engine.ops.leader_tasks import NEVER, Fence
from retoma.engine.ops.loop_watchdog import HeldLoops
from retoma.engine.ports import Process, Processes
from retoma.engine.store import Around
from retoma.words import say

FOLD = 1.0  # seconds between two foldings while jobs move

log = get_logger("retoma.watchdog")


@dataclass(frozen=True, slots=True)
class Swept:
    """What one look found."""

    lost: int = 0
    taken_back: int = 0


class Watchdog:
    """Looks after the others on behalf of one runner."""

    def __init__(
        self,
        database: Database,
        boot: str,
        process: Process,
        lease: float,
        zone: str = "UTC",
        processes: Processes | None = None,
        held_loops: HeldLoops | None = None,
    ) -> None:
        self._database = database
        self._boot = boot
        self._process = process
        self._lease = lease
        self._zone = zone  # whose days and months costs are counted by
        self._processes = processes or Processes()
        self._held_loops = held_loops or HeldLoops()
        self._beside: list[Process] = []
        self._gone: list[str] = []
        self._swept = Swept()

    def somebody_died(self) -> bool:
        """Whether a runner on this host is gone since the last look. Asks the host, no database."""
        return any(map(self._processes.gone, self._beside))

    def see(self, around: Around) -> bool:
        """Who lives beside us by now; whether there is anybody to declare lost or to take from."""
        self._beside = [process for _, process in around.beside]
        return around.left_over or around.lease_over or self.somebody_died()

    async def run_once(self) -> Swept:
        """Declare the lost lost and take all their jobs back."""
        await self._database.write(self.recover, verb="recover")
        return await self.take_back_the_rest()

    def recover(self, tx: Transaction) -> None:
        """The first bite of it, in the transaction of a claim: a tick asks once."""
        lost = len(store.lose_runners(tx, self._boot, self._lease))
        beside = store.neighbours(tx, self._boot, self._process.host)
        for boot, process in beside:
            if self._processes.gone(process) and store.move_runner(
                tx, boot, "lost", actor=self._boot
            ):
                lost += 1
                self._tell_held_loop(tx, boot)
        self._beside = [each for _, each in beside if not self._processes.gone(each)]
        self._swept = Swept(lost, len(store.take_back(tx, self._boot)))

    def _tell_held_loop(self, tx: Transaction, boot: str) -> None:
        """What it wrote before it left, if it left because its loop was held."""
        stacks = self._held_loops.stacks_of(boot)
        if stacks:
            message = say("the loop of its runner was held for too long, perhaps by this job")
            store.tell_held_loop(tx, boot, encode({"message": message, "stack": stacks}))
        self._gone.append(boot)

    async def take_back_the_rest(self) -> Swept:
        """What was more than one bite; then say what the whole look found."""
        while self._gone:
            self._held_loops.forget(self._gone.pop())  # it is in the timelines now
        swept, self._swept = self._swept, Swept()
        bite = swept.taken_back
        while bite == store.BITE:
            bite = await self._database.write(
                lambda tx: len(store.take_back(tx, self._boot)), verb="take_back"
            )
            swept = Swept(swept.lost, swept.taken_back + bite)
        if swept.lost or swept.taken_back:
            log.warning(
                "runner.took_over",
                runner=self._boot,
                lost=swept.lost,
                taken_back=swept.taken_back,
            )
        return swept

    async def fold(self) -> int:
        """Add up what moved. Anybody may: it is one transaction, and whoever comes second finds
        nothing. The duty only keeps every runner from doing it all the time."""
        return await self._database.write(self._fold, verb="fold")

    async def fold_chore(self, fence: Fence) -> float:
        folded = await fence.write(self._fold, verb="fold")
        return FOLD if folded else NEVER

    def _fold(self, tx: Transaction) -> int:
        moved = store.fold_tallies(tx)
        return moved + store.budget.fold_charges(tx, self._zone, actor=self._boot)
