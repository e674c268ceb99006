"""Code that is being moved: the document's six tests by name, its example of metrics, and who is late."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from typing import Any

import pytest

from retoma import db
from retoma.apps.embeddings import face, store
from retoma.apps.embeddings.face import EmbeddingWorker, LeaseLost, QueueClaim, QueueJob
from retoma.apps.embeddings.model import ATTEMPTS, KIND, JobStatus
from retoma.apps.embeddings.store.rows import SQL
from retoma.db import Statement, adhoc
from retoma.db.statements import Text
from retoma.engine.rules.errors import BadInput, IllegalMove, NotFound
from tests.db.test_plans import ANALYZE

LEASE = timedelta(seconds=60)  # JOB_LOCK_TTL_MS of the document


@pytest.fixture
def queue(database_url: str, test_clock: Any) -> Iterator[QueueClaim]:
    """One process of theirs."""
    test_clock.jump(0)
    made = QueueClaim(database_url)
    yield made
    made.close()


@pytest.fixture
def other(database_url: str) -> Iterator[QueueClaim]:
    """Another process."""
    made = QueueClaim(database_url)
    yield made
    made.close()


def jobs(queue: QueueClaim, n: int) -> list[QueueJob]:
    return [queue.create_embedding_job("livros", f"{i}.txt", f"texto {i}") for i in range(n)]


def test_claim_is_atomic(queue, other):
    """Claim atômico funciona: pending → processing com dono, lock e prazo, de uma vez."""
    [made] = jobs(queue, 1)
    assert (JobStatus.PENDING, KIND, 0, ATTEMPTS, None, None) == (
        *(made.status, made.jobType, made.attempts, made.maxAttempts),
        *(made.lockedBy, made.lockExpiresAt),
    )

    [job] = queue.claim_pending_jobs("worker-1")
    assert (made.id, JobStatus.PROCESSING, "worker-1", 1) == (
        *(job.id, job.status, job.lockedBy, job.attempts),
    )
    assert job.lockedAt is not None
    assert job.lockExpiresAt is not None
    assert job.lastHeartbeatAt is not None
    assert abs(job.lockExpiresAt - job.lastHeartbeatAt - LEASE) < timedelta(seconds=1)
    assert job.processingStartedAt == job.lockedAt
    assert "texto 0" == queue.text_of(job)["text"]

    done = queue.finalize_job(job, {"ok": True})
    assert (JobStatus.COMPLETED, None, None, None, 1) == (
        *(done.status, done.lockedBy, done.lockedAt, done.lockExpiresAt, done.attempts),
    )
    assert done.processedAt is not None
    assert [] == other.claim_pending_jobs("worker-2")


def test_two_workers_do_not_claim_the_same_job(queue, other):
    """Dois workers não claimam o mesmo job: ao mesmo tempo, de dois processos, cada um uma vez."""
    made = jobs(queue, 12)
    with ThreadPoolExecutor(2) as threads:
        both = [
            threads.submit(each.claim_pending_jobs, name, 12)
            for each, name in ((queue, "worker-1"), (other, "worker-2"))
        ]
        mine, theirs = (each.result() for each in both)
    claimed = Counter(job.id for job in (*mine, *theirs))
    assert {job.id: 1 for job in made} == claimed


def test_the_batch_size_is_kept(queue):
    """Batch size respeitado: nem mais do que se pede, nem menos do que há; os mais antigos primeiro."""
    made = [job.id for job in jobs(queue, 5)]
    assert made[:2] == [job.id for job in queue.claim_pending_jobs("worker-1", 2)]
    assert made[2:] == [job.id for job in queue.claim_pending_jobs("worker-1", 50)]
    for size in (0, -1, 101):
        with pytest.raises(BadInput):
            queue.claim_pending_jobs("worker-1", size)


def test_a_heartbeat_extends_the_lock(queue, other, test_clock):
    """Heartbeat estende lock: dois prazos depois ainda é dele, e ninguém o recupera."""
    jobs(queue, 1)
    [job] = queue.claim_pending_jobs("worker-1")
    for _ in range(3):
        test_clock.jump(45)
        beaten = queue.update_heartbeat(job)
        assert beaten.lockExpiresAt is not None
        assert job.lockExpiresAt is not None
        assert beaten.lockExpiresAt > job.lockExpiresAt
        assert 0 == other.recover_stuck_jobs("worker-2")
    assert [] == other.claim_pending_jobs("worker-2")
    assert JobStatus.COMPLETED is queue.finalize_job(job).status


def test_stuck_jobs_are_recovered(queue, other, test_clock):
    """Recuperação de stuck jobs funciona: volta a pending, outro o leva, e o atrasado nada escreve (E3)."""
    jobs(queue, 2)
    held = queue.claim_pending_jobs("worker-1")
    test_clock.jump(61)
    assert 2 == other.get_worker_metrics()["stuckJobCount"]
    assert 2 == other.get_worker_metrics("worker-1")["stuckJobCount"]
    assert 2 == other.recover_stuck_jobs("worker-2")
    assert 0 == other.recover_stuck_jobs("worker-2")

    again = other.claim_pending_jobs("worker-2")
    assert {job.id for job in held} == {job.id for job in again}
    for late in held:
        with pytest.raises(LeaseLost):
            queue.update_heartbeat(late)
        with pytest.raises(LeaseLost):
            queue.finalize_job(late)
    assert {JobStatus.COMPLETED} == {other.finalize_job(job).status for job in again}
    told = other.get_worker_metrics()
    assert (4, 2, 2, 0) == tuple(
        told[name]
        for name in ("jobsClaimed", "jobsCompleted", "jobsRecovered", "stuckJobCount")
    )


def test_jobs_with_max_attempts_go_to_the_dlq(queue, test_clock):
    """Jobs com maxAttempts vão para DLQ: W2 H-36: cinco falhas com espera entre elas, e a quinta é a última."""
    [made, other] = jobs(queue, 2)
    for attempt in range(1, ATTEMPTS + 1):
        [job] = [
            each for each in queue.claim_pending_jobs("worker-1") if each.id == made.id
        ] or pytest.fail(f"attempt {attempt} did not come")
        assert attempt == job.attempts
        failed = queue.retry_job(job, "o serviço caiu")
        assert [] == queue.claim_pending_jobs("worker-1"), "no hot loop"
        last = attempt == ATTEMPTS
        assert (JobStatus.FAILED if last else JobStatus.PENDING) == failed.status
        assert failed.lockedBy is None
        test_clock.jump(301)
        _keep(queue, other)
    assert ("moved_code", ATTEMPTS) == (failed.errorCode, failed.attempts)
    told = queue.get_worker_metrics("worker-1")
    assert (ATTEMPTS - 1, 1) == (told["jobsRetried"], told["jobsFailed"])


def _keep(queue: QueueClaim, job: QueueJob) -> None:
    """The other one is held all the while: it is no concern of the first."""
    if job.id in queue._holds:
        queue.recover_stuck_jobs("worker-3")
        queue._holds.pop(job.id)


# — besides —


def test_the_documents_example_of_metrics(queue, test_clock):
    """W3: exactly the document's seven names; per worker and in total they equal the fold of events."""
    jobs(queue, 6)
    first = queue.claim_pending_jobs("worker-1", 4)
    test_clock.jump(2)
    for job in first[:2]:
        queue.finalize_job(job)
    queue.retry_job(first[2], "falhou")
    second = queue.claim_pending_jobs("worker-2", 2)
    queue.finalize_job(second[0])

    metrics = EmbeddingWorker(queue=queue).get_metrics()
    names = (
        *("jobsClaimed", "jobsCompleted", "jobsFailed", "jobsRetried", "jobsRecovered"),
        *("avgJobDurationMs", "stuckJobCount"),
    )
    assert names == tuple(metrics)
    assert (6, 3, 0, 1, 0) == tuple(metrics[name] for name in names[:5])
    mine = EmbeddingWorker("worker-1", queue=queue).get_metrics()
    assert (4, 2, 0, 1, 0) == tuple(mine[name] for name in names[:5])
    assert 2000 <= mine["avgJobDurationMs"] < 60_000
    assert dict.fromkeys(names, 0) == EmbeddingWorker("nobody", queue=queue).get_metrics()


def test_h32_a_claim_takes_what_is_pending_and_what_has_expired(queue, other, test_clock):
    """H-32: "pending OU com lock expirado", and nothing whose lock is live; nobody needs to recover first."""
    jobs(queue, 2)
    [held] = queue.claim_pending_jobs("worker-1", 1)
    [free] = other.claim_pending_jobs("worker-2", 10)
    assert held.id != free.id
    test_clock.jump(45)
    other.update_heartbeat(free)
    test_clock.jump(20)

    [again] = other.claim_pending_jobs("worker-2", 10)
    assert (held.id, "worker-2") == (again.id, again.lockedBy)
    with pytest.raises(LeaseLost):
        queue.finalize_job(held)
    assert {JobStatus.COMPLETED} == {other.finalize_job(job).status for job in (free, again)}


def test_h34_the_last_of_a_batch_does_not_expire_behind_the_others(queue, other, test_clock):
    """H-34: nine jobs of 30 seconds each, a heartbeat for whichever is at work; the tenth is held all the while."""
    jobs(queue, 10)
    batch = queue.claim_pending_jobs("worker-1", 10)
    for job in batch:
        test_clock.jump(30)
        queue.update_heartbeat(job)
        assert [] == other.claim_pending_jobs("worker-2")
        assert JobStatus.COMPLETED is queue.finalize_job(job).status
    assert 0 == queue.get_worker_metrics()["jobsRecovered"]


def test_h37_however_many_recover_each_job_is_recovered_once(queue, other, test_clock):
    """H-37: k recoveries at once make one new attempt of each."""
    jobs(queue, 6)
    held = queue.claim_pending_jobs("worker-1", 6)
    test_clock.jump(61)
    with ThreadPoolExecutor(4) as threads:
        asked = [
            threads.submit(each.recover_stuck_jobs, f"worker-{n}")
            for n, each in enumerate((queue, other) * 2, start=2)
        ]
        assert len(held) == sum(each.result() for each in asked)
    again = Counter(job.id for job in other.claim_pending_jobs("worker-6", 10))
    assert {job.id: 1 for job in held} == again
    assert 6 == other.get_worker_metrics()["jobsRecovered"]


def test_threads_that_come_together_have_one_home(queue, monkeypatch):
    """The one that is forgotten would keep its connections."""
    made, home = [], face._Home

    def slow(url):
        made.append(home(url))
        Event().wait(0.2)
        return made[-1]

    monkeypatch.setattr(face, "_Home", slow)
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda _: queue._at_home(), range(2)))
    assert [made[0]] * 2 == found
    assert 1 == len(made)


def test_h38_an_old_job_that_fails_does_not_keep_new_ones_from_their_turn(queue):
    """H-38: it waits for its time, and whoever came after it goes on."""
    made = [job.id for job in jobs(queue, 3)]
    [first] = queue.claim_pending_jobs("worker-1", 1)
    queue.retry_job(first, "falhou")
    [second] = queue.claim_pending_jobs("worker-1", 1)
    [third] = queue.claim_pending_jobs("worker-1", 1)
    assert made == [first.id, second.id, third.id]
    assert [] == queue.claim_pending_jobs("worker-1", 1)


def test_a_worker_that_started_again_under_its_old_name_is_another(queue, other, test_clock):
    """H-35: the name gives no rights; the claim does."""
    jobs(queue, 1)
    [job] = queue.claim_pending_jobs("worker-1")
    with pytest.raises(LeaseLost):
        other.finalize_job(job)
    test_clock.jump(61)
    other.recover_stuck_jobs("worker-1")
    [again] = other.claim_pending_jobs("worker-1")
    with pytest.raises(LeaseLost):
        queue.finalize_job(job)
    assert JobStatus.COMPLETED is other.finalize_job(again).status


def test_what_is_held_is_given_back_when_the_queue_is_closed(database_url, queue, other):
    jobs(queue, 1)
    [job] = queue.claim_pending_jobs("worker-1")
    queue.close()
    [again] = other.claim_pending_jobs("worker-2")
    assert job.id == again.id
    assert 1 == again.attempts


def test_bad_input_is_refused_and_changes_nothing(queue):
    for text in ("", "metade \ud800"):
        with pytest.raises(BadInput):
            queue.create_embedding_job("livros", "a.txt", text)
    with pytest.raises(BadInput):
        queue.create_embedding_job("com/barra", "a.txt", "texto")
    with pytest.raises(LeaseLost):
        queue.update_heartbeat(12)
    with pytest.raises(NotFound):
        queue.text_of(12)
    [made] = jobs(queue, 1)
    [job] = queue.claim_pending_jobs("worker-1")
    with pytest.raises(BadInput):
        queue.finalize_job(job, object())
    assert made.id == queue.create_embedding_job("livros", "0.txt", "texto 0").id
    assert JobStatus.COMPLETED is queue.finalize_job(job).status


def test_a_canceled_job_is_told_by_its_next_heartbeat(database_url, queue):
    jobs(queue, 1)
    [job] = queue.claim_pending_jobs("worker-1")
    home = queue._at_home()
    home.submit(lambda tx: tx.cancel(job.id, actor="ana"))
    with pytest.raises(IllegalMove, match="canceled"):
        queue.update_heartbeat(job)
    assert JobStatus.FAILED is queue._job(job.id).status


def test_the_functions_of_the_module_are_those_of_one_queue(monkeypatch, database_url):
    """`WORKER_ID=worker-7`, JOB_LOCK_TTL_MS and JOB_HEARTBEAT_INTERVAL_MS, as the document sets them."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("WORKER_ID", "worker-7")
    monkeypatch.setenv("JOB_LOCK_TTL_MS", "90000")
    monkeypatch.setenv("JOB_HEARTBEAT_INTERVAL_MS", "10000")
    try:
        face.create_embedding_job("livros", "a.txt", "texto")
        [job] = face.claim_pending_jobs()
        assert "worker-7" == job.lockedBy
        assert job.lockExpiresAt is not None
        assert job.lastHeartbeatAt is not None
        lasts = (job.lockExpiresAt - job.lastHeartbeatAt).total_seconds()
        assert abs(90 - lasts) < 1
        face.update_heartbeat(job)
        assert 0 == face.recover_stuck_jobs()
        face.retry_job(job, "x")
        assert 1 == face.get_worker_metrics("worker-7")["jobsRetried"]
    finally:
        face.QUEUE.close()


# — the table —


async def test_the_table_is_a_view_with_the_documents_names(database_url):
    """H-31: on both databases, by the names of the document; nobody writes to it."""
    database = db.open(database_url)
    names = ", ".join(f'"{name}"' for name in store.jobs.QueueJob.__dataclass_fields__)
    try:
        shown = adhoc(f"SELECT {names} FROM queue_jobs")  # noqa: S608 — names of ours
        assert [] == await database.read(lambda tx: tx.all(shown))
    finally:
        database.close()


async def test_what_the_documents_indices_were_for_is_answered_by_index(database_url):
    """(status, lockExpiresAt) and (lockedBy): with 20,000 jobs that have ended nothing is read from end to end."""
    database = db.open(database_url)
    many = adhoc(
        """INSERT INTO jobs (kind, version, queue, state, payload, created_at, ended_at)
           WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
           SELECT 'embeddings.document', 1, 'embeddings.document', 'done', '{"document":1}', 1, 1 FROM n""",
        """INSERT INTO jobs (kind, version, queue, state, payload, created_at, ended_at)
           SELECT 'embeddings.document', 1, 'embeddings.document', 'done', '{"document":1}', now(), now()
           FROM generate_series(1, 20000)""",
    )
    try:
        await database.write(lambda tx: tx.run(many), verb="test")
        if database_url.startswith("postgres"):
            await database.write(lambda tx: tx.run(ANALYZE), verb="test")
        for verb, asked in (
            (SQL.stuck_jobs, {}),
            (SQL.jobs_locked_by, {"worker": "worker-1"}),
            (SQL.next_jobs, {"n": 10}),
        ):
            plan = await _plan(database, verb, asked)
            assert "jobs_held" in plan or "jobs_waiting" in plan, plan
            assert "Seq Scan on jobs" not in plan, plan
            assert "SCAN jobs\n" not in plan, plan
            assert "SCAN j\n" not in plan, plan
    finally:
        database.close()


async def _plan(database: Any, verb: Statement, asked: dict[str, Any]) -> str:
    explain = Statement(
        "explain",
        (Text(f"EXPLAIN QUERY PLAN {verb.sqlite[-1].sql}", answers=True),),
        (Text(f"EXPLAIN {verb.postgres[-1].sql}", answers=True),),
    )
    rows = await database.read(lambda tx: tx.all(explain, **asked))
    return "\n".join(str(row[-1]) for row in rows) + "\n"
