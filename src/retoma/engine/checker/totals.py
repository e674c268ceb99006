"""What must hold over all jobs: counters, limits, costs, pool items and batches against the rows they sum up."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from retoma.db import Transaction, statement
from retoma.engine.rules.gates import parted
from retoma.words import Said, say

Finding = tuple[str, Said]  # the object, and what is wrong with it
Total = Callable[[Transaction, int], Iterator[Finding]]

ALL_JOBS, NO_BATCH = -1, 0  # in place of a batch
FULL = 9_000_000_000_000_000_000  # an account that is full stays full

BATCHES = statement("retoma.engine.checker.sql", "check_batches")
COSTS = statement("retoma.engine.checker.sql", "check_costs")
COUNTERS = statement("retoma.engine.checker.sql", "check_counters")
HOLDS = statement("retoma.engine.checker.sql", "check_holds")
LIMITS = statement("retoma.engine.checker.sql", "check_limits")
ORPHANS = statement("retoma.engine.checker.sql", "check_orphans")
RUNNERS = statement("retoma.engine.checker.sql", "check_runners")
USED_LIMITS = statement("retoma.engine.checker.sql", "check_used_limits")


def counters_equal_rows(tx: Transaction, most: int) -> Iterator[Finding]:
    """Q4: what the counters say of every batch, kind and state is what the rows add up to."""
    for batch, kind, state, code, counted, found in tx.all(COUNTERS, most=most):
        whose = {ALL_JOBS: say("all jobs"), NO_BATCH: say("jobs without a batch")}.get(
            batch, say("batch {batch}", batch=batch)
        )
        yield (
            whose,
            say(
                "the counters say {counted} jobs of {group} are {state}, there are {found}",
                counted=counted,
                group="/".join(filter(None, (kind, code))),
                state=state,
                found=found,
            ),
        )


def limits_equal_rows(tx: Transaction, _: int) -> Iterator[Finding]:
    """E16: a limit counts the running jobs that name it."""
    running: Counter[str] = Counter()
    for limit_key, n in tx.all(LIMITS):
        for key in parted(limit_key):
            running[key] += n
    for key, used in tx.all(USED_LIMITS):
        if used != running[key]:
            yield (
                f"limit {key}",
                say("it counts {used} running jobs, there are {n}", used=used, n=running[key]),
            )


def costs_add_up(tx: Transaction, _: int) -> Iterator[Finding]:
    """Every charge is in the account of all jobs, of its kind, its application and its provider."""
    sums: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for scope, _name, provider, model, unit, sort, amount in tx.all(COSTS):
        sums[provider, model, unit, sort][scope] += amount
    for (provider, model, unit, sort), by_scope in sums.items():
        accounts = {each: by_scope[each] for each in ("all", "kind", "application", "provider")}
        if len({*accounts.values()}) > 1 and max(accounts.values()) < FULL:
            yield (
                "/".join(filter(None, (provider, model, unit, sort))),
                say(
                    "the accounts of one and the same charges differ: {accounts}",
                    accounts=", ".join(f"{name} {n}" for name, n in accounts.items()),
                ),
            )


def holds_have_holders(tx: Transaction, most: int) -> Iterator[Finding]:
    """E17: whoever holds a pool item is there, under an epoch it has had."""
    for pool, name, job, epoch, known in tx.all(HOLDS, most=most):
        yield (
            f"pool item {pool}/{name}",
            say("job {job} holds it, and is not there", job=job)
            if known is None
            else say(
                "job {job} holds it from epoch {epoch} and is at epoch {known}",
                job=job,
                epoch=epoch,
                known=known,
            ),
        )


def batches_have_their_jobs(tx: Transaction, most: int) -> Iterator[Finding]:
    """Q4: a job's batch is there, and the job lies in the range of ids that the batch names."""
    for batch, first, last, lowest, highest, n in tx.all(BATCHES, most=most):
        yield (
            f"batch {batch}",
            say("{n} jobs name it, and it is not there", n=n)
            if first is None and last is None
            else say(
                "its jobs have the ids {lowest} to {highest}, it names {first} to {last}",
                lowest=lowest,
                highest=highest,
                first=first,
                last=last,
            ),
        )


def rows_have_their_jobs(tx: Transaction, most: int) -> Iterator[Finding]:
    """E20: no step and no evidence link without its job."""
    for table, job, name in tx.all(ORPHANS, most=most):
        yield (
            f"job {job}",
            say("{table} keeps {name} of it, and the job is not there", table=table, name=name),
        )


def holders_are_known(tx: Transaction, most: int) -> Iterator[Finding]:
    """E7: a running job is held by a runner that can be looked after."""
    for job, runner in tx.all(RUNNERS, most=most):
        yield (
            f"job {job}",
            say(
                "it runs on {runner}, of which there is no row: nobody takes it back",
                runner=runner,
            ),
        )


TOTALS: dict[str, Total] = {
    "counters": counters_equal_rows,
    "limits": limits_equal_rows,
    "accounts": costs_add_up,
    "holds": holds_have_holders,
    "batches": batches_have_their_jobs,
    "orphans": rows_have_their_jobs,
    "runners": holders_are_known,
}
