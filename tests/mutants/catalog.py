"""The mutants: each is the system with one of its promises taken out, and what finds that.

M01 to M24 are those of the promises; D1 to D9 are the code of defects that were cured; R1 to R13 take out what
was asked for beside these; U1 and U2 are the code of what universes were red for.
"""

from dataclasses import dataclass

from tests.mutants.edit import Edit
from tests.mutants.killers import ByCell, ByTest, ByUniverses, Killer

SQL = "sql"
STORE = "tests/engine/test_store.py"
MEMORY = "tests/engine/run/test_attempt.py::test_nothing_that_has_ended_is_still_in_memory"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One promise taken out. `cheap`: it is also killed in the gate, not only in the soak."""

    name: str
    breaks: str
    edits: tuple[Edit, ...]
    killers: tuple[Killer, ...]
    cheap: bool = False


def in_sql(statement: str, old: str, new: str) -> Edit:
    return Edit(f"{SQL}:{statement}", old, new)


M01 = Mutant(
    "M01",
    "a claim may be settled under an epoch that has passed",
    (
        in_sql(
            "settle_jobs.sqlite",
            "ON j.id = o.value ->> 'job' AND j.epoch = o.value ->> 'epoch'",
            "ON j.id = o.value ->> 'job'",
        ),
        in_sql("settle_jobs.postgres", "j.id = s.job AND j.epoch = s.epoch", "j.id = s.job"),
    ),
    (ByTest(f"{STORE}::test_e3_a_stale_epoch_can_write_nothing"),),
)
M02 = Mutant(
    "M02",
    "a heartbeat renews the lease of an instance that was declared lost",
    (
        in_sql(
            "beat_runner",
            "WHERE boot = :boot AND state IN ('alive', 'leaving')",
            "WHERE boot = :boot",
        ),
    ),
    (
        ByTest(
            "tests/engine/run/test_heartbeat.py::test_e3_a_beat_of_a_lost_runner_is_refused_and_changes_nothing"
        ),
    ),
    cheap=True,
)
M03 = Mutant(
    "M03",
    "a step may be saved under an epoch that has passed",
    (
        in_sql(
            "save_steps.sqlite",
            "ON j.id = o.value ->> 'job' AND j.epoch = o.value ->> 'epoch'",
            "ON j.id = o.value ->> 'job'",
        ),
        in_sql("save_steps.postgres", "j.id = s.job AND j.epoch = s.epoch", "j.id = s.job"),
    ),
    (ByTest(f"{STORE}::test_e3_a_stale_epoch_can_write_nothing"),),
)
M04 = Mutant(
    "M04",
    "the lease ends by the clock of the runner's machine",
    (
        Edit(
            "retoma.engine.store.runners:beat_runner",
            '"lease": lease,',
            '"lease": lease + __import__("time").time()'
            ' - __import__("retoma.db").db.moment(tx.one(SQL.now)[0]).timestamp(),',
        ),
    ),
    (
        ByTest(
            "tests/engine/run/test_heartbeat.py::test_a_beat_renews_the_lease_in_the_database"
        ),
    ),
)
M05 = Mutant(
    "M05",
    "the clock of PostgreSQL stands still within a transaction",
    (
        Edit(
            "retoma.engine.migrations:0001_engine.postgres.up",
            "AS 'SELECT clock_timestamp()';",
            "AS 'SELECT now()';",
        ),
    ),
    (ByTest("tests/test_clock.py::test_the_clock_moves_within_a_transaction[postgres]"),),
)
M06 = Mutant(
    "M06",
    "an attempt is counted when it fails, not when it is claimed",
    (
        in_sql("claim_jobs.sqlite", "failures = failures + 1,", ""),
        in_sql("claim_jobs.postgres", "failures = j.failures + 1,", ""),
        in_sql("claim_met_jobs.sqlite", "failures = failures + 1,", ""),
        in_sql("claim_met_jobs.postgres", "failures = j.failures + 1,", ""),
        in_sql(
            "settle_jobs.sqlite",
            "IN ('failed', 'buried') THEN 0 ELSE 1 END",
            "IN ('failed', 'buried') THEN -1 ELSE 0 END",
        ),
        in_sql(
            "settle_jobs.postgres",
            "AND (j.cancel_at IS NULL OR s.at_work) THEN 0 ELSE 1 END",
            "AND (j.cancel_at IS NULL OR s.at_work) THEN -1 ELSE 0 END",
        ),
        in_sql("take_back_jobs.sqlite", "failures = failures - 1,", ""),
        in_sql("take_back_jobs.postgres", "failures = j.failures - 1,", ""),
    ),
    (
        ByTest(
            "tests/engine/run/test_attempt.py::test_e9_when_the_attempts_are_spent_the_job_is_buried_with_what_was_seen"
        ),
    ),
)
M07 = Mutant(
    "M07",
    "the event of an end is written in a transaction of its own",
    (
        in_sql(
            "settle_jobs.sqlite",
            "INSERT INTO events (job, seq, epoch, type, at, actor, details)\n"
            "SELECT job, seq, epoch, event, (SELECT clock()), :boot, nullif(details, 'null')\n"
            "FROM temp.ended;\n\n",
            "",
        ),
        in_sql(
            "settle_jobs.postgres",
            "), told AS (\n"
            "    INSERT INTO events (job, seq, epoch, type, at, actor, details)\n"
            "    SELECT id, seq, epoch, event, (SELECT clock()), :boot, details FROM ended\n",
            "",
        ),
        Edit(
            "retoma.engine.writing.group_writer:Writer._commit",
            "                await self._tell(group.answered(answers))\n",
            """                def tell(tx):
                    import json
                    from retoma.db import adhoc
                    from retoma.engine.store.rows import append_event
                    seq_of = adhoc("SELECT seq, state FROM jobs WHERE id = :job")
                    for waiter in ended:
                        row = json.loads(waiter.row)
                        seq, state = tx.one(seq_of, job=row["job"])
                        event = "canceled" if state == "canceled" else row["event"]
                        details = None if row.get("details") is None else json.dumps(row["details"])
                        append_event(tx, row["job"], seq, event, self._boot, details, epoch=row["epoch"])
                refused = group.answered(answers)
                ended = [waiter for waiter in group.settles if waiter not in refused]
                if ended:
                    await self._database.write(tell, verb="told")
                await self._tell(refused)
""",
        ),
    ),
    (ByUniverses(0, "event|timeline"),),
    cheap=True,
)
M08 = Mutant(
    "M08",
    "no intent is committed before work is sent or a payment made",
    (
        Edit(
            "retoma.engine.handlers.remote:Call._send",
            "        await self._keep(step, None, StepState.BEGUN)\n",
            "",
        ),
        Edit(
            "retoma.engine.handlers.steps:Steps._once",
            "        await self.keep(step, None, StepState.BEGUN)\n",
            "",
        ),
    ),
    (
        ByTest("tests/engine/test_intent.py::test_e6_the_intent_is_committed_before_the_call"),
        ByUniverses(0, "live .* times at once|was made .* times"),
    ),
    cheap=True,
)
M09 = Mutant(
    "M09",
    "what was begun and is not known to have ended is sent again",
    (
        Edit(
            "retoma.engine.handlers.remote:Call.result",
            "if self._last is not None and self._last.state is StepState.BEGUN:",
            "if False:",
        ),
        Edit(
            "retoma.engine.handlers.remote:Call.result",
            "if last is None or last.state in OVER:",
            "if last is None or last.state in (*OVER, StepState.BEGUN):",
        ),
        Edit(
            "retoma.engine.handlers.steps:Steps._once",
            "if begun is not None and begun.state is StepState.BEGUN:",
            "if False:",
        ),
    ),
    (
        ByTest(
            "tests/engine/handlers/test_remote.py::test_e6_a_lost_reply_is_looked_up_by_our_own_key"
        ),
        ByUniverses(0, "live .* times at once|was made .* times"),
    ),
    cheap=True,
)
M10 = Mutant(
    "M10",
    "jobs are taken back without looking whether another has done so meanwhile",
    (
        in_sql("take_back_jobs.postgres", "LIMIT :bite FOR UPDATE SKIP LOCKED", "LIMIT :bite"),
        in_sql(
            "take_back_jobs.postgres",
            "WHERE j.id = l.id AND j.state = 'running'",
            "WHERE j.id = l.id",
        ),
    ),
    (
        ByTest(
            "tests/engine/ops/test_watchdog.py::test_e19_two_who_take_back_at_the_same_moment_take_each_job_back_once[postgres]"
        ),
    ),
)
M11 = Mutant(
    "M11",
    "a failed attempt is tried again although somebody wants its job canceled",
    (
        in_sql(
            "settle_jobs.sqlite",
            "WHERE state NOT IN ('done', 'skipped') AND at_work IS NULL",
            "WHERE state NOT IN ('done', 'skipped', 'waiting') AND at_work IS NULL",
        ),
        in_sql(
            "settle_jobs.postgres",
            "state = CASE WHEN j.cancel_at IS NULL OR s.state IN ('done', 'skipped')",
            "state = CASE WHEN j.cancel_at IS NULL OR s.state IN ('done', 'skipped', 'waiting')",
        ),
    ),
    (ByTest(f"{STORE}::test_e13_a_job_to_be_canceled_ends_so_and_is_never_tried_again"),),
    cheap=True,
)
M12 = Mutant(
    "M12",
    "a person may cancel what has ended",
    (in_sql("cancel_job", "WHERE id = :job AND state = :was AND (", "WHERE id = :job AND ("),),
    (ByTest(f"{STORE}::test_e12_an_ended_job_is_moved_only_by_again"),),
    cheap=True,
)
M13 = Mutant(
    "M13",
    "an item of a pool is let go of by somebody who does not hold it",
    (
        in_sql(
            "let_go.sqlite",
            "\n  AND i.job = s.job AND (i.scope <> 'attempt' OR i.epoch = s.epoch)",
            "",
        ),
        in_sql(
            "let_go.postgres",
            "\n  AND i.job = s.job AND (i.scope <> 'attempt' OR i.epoch = s.epoch)",
            "",
        ),
    ),
    (ByTest("tests/engine/limits/test_pools.py::test_who_lets_go_twice_is_told_no"),),
)
M14 = Mutant(
    "M14",
    "the failures of a pool's item are never forgotten",
    (
        in_sql(
            "let_go.sqlite", "WHEN s.worked = 1 THEN 0\n", "WHEN s.worked = 1 THEN i.failures\n"
        ),
        in_sql(
            "let_go.postgres",
            "WHEN s.worked = 1 THEN 0\n",
            "WHEN s.worked = 1 THEN i.failures\n",
        ),
    ),
    (
        ByTest(
            "tests/engine/limits/test_pools.py::test_what_works_again_has_no_failures_any_more"
        ),
    ),
)
M15 = Mutant(
    "M15",
    "a stream of events follows their numbers: what commits late is never seen",
    (
        in_sql(
            "tail_events.postgres",
            "WHERE xid = ANY(ARRAY(SELECT pg_snapshot_xip(CAST(:old AS pg_snapshot))))) e",
            "WHERE false) e",
        ),
    ),
    (
        ByTest(
            "tests/engine/test_tail.py::test_an_event_that_commits_late_comes_in_the_poll_after_it"
        ),
    ),
)
M16 = Mutant(
    "M16",
    "retention deletes what somebody refers to",
    (
        Edit(
            "retoma.engine.store.retire:_unreferred",
            "return [id_ for id_ in ids if id_ not in named]",
            "return ids",
        ),
    ),
    (
        ByTest(
            "tests/engine/ops/test_retention.py::test_e20_what_a_declared_column_names_stays_until_it_names_it_no_more",
            "there is no job",
        ),
        ByTest(
            "tests/engine/ops/test_retention.py::test_e20_a_batch_stays_while_it_has_jobs_or_somebody_names_it"
        ),
    ),
)
M17 = Mutant(
    "M17",
    "what runs under a limit is counted in the memory of a process",
    (
        Edit(
            "retoma.engine.store.gates:room_of",
            "return dict(tx.all(SQL.lock_limits, keys=json.dumps(wanted))) if wanted else {}",
            'used = room_of.__dict__.setdefault("used", Counter())\n'
            "    found = tx.all(SQL.lock_limits, keys=json.dumps(wanted)) if wanted else []\n"
            "    return {key: room - used[key] for key, room in found}",
        ),
        Edit(
            "retoma.engine.store.gates:_count",
            "return moved, dict(tx.all(SQL.use_limits, rows=json.dumps(rows)))",
            "room = room_of(tx, moved)\n"
            "    for each in rows:\n"
            '        room_of.used[each["key"]] = max(room_of.used[each["key"]] + each["n"], 0)\n'
            '    return moved, {each["key"]: room[each["key"]] - each["n"] for each in rows}',
        ),
    ),
    (
        ByTest(
            "tests/engine/test_gates.py::test_e16_what_a_lost_runner_held_is_given_back_with_its_jobs"
        ),
    ),
)
M18 = Mutant(
    "M18",
    "a transaction on SQLite takes the file when it first writes, not when it begins",
    (
        Edit(
            "retoma.db.sqlite:Sqlite._in_one_transaction",
            '"BEGIN IMMEDIATE"',
            '"BEGIN"',
        ),
        Edit("retoma.db.sqlite:_Ask.do", '"BEGIN IMMEDIATE"', '"BEGIN"'),
    ),
    (
        ByTest(
            "tests/db/test_sqlite.py::test_nobody_writes_between_what_a_transaction_reads_and_what_it_writes"
        ),
    ),
)
M19 = Mutant(
    "M19",
    "a job whose result cannot be stored is tried again",
    (
        Edit(
            "retoma.engine.rules.errors:ENGINE_CODES",
            '"unstorable_result",\n        ErrorClass.DATA,\n        Action.PARK,',
            '"unstorable_result",\n        ErrorClass.DATA,\n        Action.RETRY,',
        ),
    ),
    (
        ByTest(
            "tests/engine/run/test_attempt.py::test_e22_a_result_that_cannot_be_stored_is_paid_once_and_parked_with_its_bytes_kept"
        ),
        ByTest(
            "tests/engine/rules/test_retry.py::test_a_result_that_cannot_be_stored_is_held_at_the_first_failure"
        ),
    ),
)
M20 = Mutant(
    "M20",
    "the heartbeat runs on the event loop",
    (
        Edit(
            "retoma.engine.run.heartbeat:HeartbeatThread.start",
            "self._thread.start()",
            """import asyncio
        loop = asyncio.get_running_loop()
        def again() -> None:
            if self._stopping.is_set():
                return
            try:
                if self._heartbeat.run_once(self._database.wait_bell(0)):
                    loop.call_later(0.02, again)
            except BaseException as error:
                self._on_death(error)
        again()""",
        ),
    ),
    (
        ByTest(
            "tests/engine/run/test_heartbeat.py::test_a_handler_that_holds_the_event_loop_loses_no_lease"
        ),
    ),
)
M21 = Mutant(
    "M21",
    "a failed attempt is tried again at once",
    (
        Edit(
            "retoma.engine.rules.retry:backoff",
            "return min(longest, rng.uniform(shortest, longest))",
            "return 0.0 * min(longest, rng.uniform(shortest, longest))",
        ),
    ),
    (
        ByTest(
            "tests/engine/rules/test_retry.py::test_e15_without_jitter_each_wait_is_the_double_of_the_last_up_to_the_cap"
        ),
    ),
    cheap=True,
)
M22 = Mutant(
    "M22",
    "secrets in the query of an address are shown",
    (
        Edit(
            "retoma.secret.redact:_RULES",
            'rf"([?&;](?:key|sig|{_NAMES})=)[^&\\s\\"\'#;]+"',
            'rf"([?&;](?:{_NAMES})=)(?!)"',
        ),
    ),
    (
        ByTest(
            "tests/secret/test_redact.py::test_what_looks_like_a_secret_is_not_shown"
            "[https://x.example/a?key=abc&b=1-https://x.example/a?key=***&b=1]"
        ),
    ),
)
M23 = Mutant(
    "M23",
    "a scrape that found nothing is asked after for ever",
    (
        Edit(
            "retoma.apps.ads.steps.extraction:SCRAPE",
            '    "empty": Edge.DONE,\n',
            "",
        ),
    ),
    (
        ByTest(
            "tests/apps/ads/test_steps.py::test_m2_nothing_found_is_a_mission_completed",
            "Timeout|still open",
        ),
    ),
)
M24 = Mutant(
    "M24",
    "whoever resumes an execution need not be the first who does",
    (
        Edit(
            "retoma.apps.documents.sql:resume_execution",
            "WHERE id = :execution AND epoch = :epoch AND (",
            "WHERE id = :execution AND (",
        ),
    ),
    (
        ByTest(
            "tests/apps/documents/test_fences.py::test_c5_a_resume_counts_once_for_what_was_seen"
        ),
    ),
)
D1 = Mutant(
    "D1",
    "a job that ends while lost claims are looked for is started again",
    (
        Edit(
            "retoma.engine.run.claims:Claims._unknown",
            "return [claim for claim in held if claim.held not in started]",
            "return [claim for claim in held if claim.held not in self._jobs.known()]",
        ),
    ),
    (
        ByTest(
            "tests/engine/run/test_runner.py::test_what_ends_while_unknown_claims_are_looked_for_is_not_started_again"
        ),
    ),
)
D2 = Mutant(
    "D2",
    "a commit in doubt is looked up while the server may still be at it",
    (
        Edit(
            "retoma.db.postgres:Postgres.write",
            "[result] = await self._settled(line, doubt, seconds)",
            "raise doubt",
        ),
        Edit("retoma.db.postgres:_Line._connected", "if self._unfinished:", "if False:"),
    ),
    (
        ByTest(
            "tests/chaos/test_in_doubt.py::test_what_a_job_commits_while_its_connection_breaks_is_done_once"
        ),
    ),
)
D3 = Mutant(
    "D3",
    "a heartbeat that ends by an error is not missed; one file too many ends it",
    (
        Edit(
            "retoma.engine.run.heartbeat:HeartbeatThread._run",
            "self._on_death(error)",
            "del error",
        ),
        Edit(
            "retoma.db.poll:wait_readable",
            "return bool(poll.poll(math.ceil(min(max(seconds, 0.0), LONGEST) * 1000)))",
            "return bool(select.select([*descriptors], [], [], max(seconds, 0.0))[0])",
        ),
    ),
    (
        ByTest(
            "tests/engine/run/test_heartbeat.py::test_a_runner_whose_heartbeat_dies_gives_back_its_jobs_and_begins_anew",
            "TimeoutError",
        ),
        ByTest(
            "tests/engine/run/test_heartbeat.py::test_a_process_with_more_than_1024_open_files_hears_wake_ups",
            "TimeoutError",
        ),
    ),
)
D4 = Mutant(
    "D4",
    "a row refused for an unknown reason takes its whole group along",
    (
        Edit(
            "retoma.engine.writing.group_writer:Writer._commit",
            "                if halves := group.halves():\n",
            "                if isinstance(error, BadRow) and (halves := group.halves()):\n",
        ),
        Edit(
            "retoma.engine.writing.group_writer:Writer._commit",
            "if isinstance(error, BadRow) or not from_driver(error):",
            "if True:",
        ),
    ),
    (
        ByTest(
            "tests/engine/writing/test_group_writer.py::test_a_row_refused_for_a_reason_nobody_knows_fails_alone"
        ),
    ),
)
D5 = Mutant(
    "D5",
    "a result whose repr raises is bought again and again",
    (
        Edit(
            "retoma.engine.run.attempt:Attempt._keep_unstorable",
            "error.content()[:KEPT]",
            'repr(error.whole).encode("utf-8", "replace")[:KEPT]',
        ),
    ),
    (
        ByTest(
            "tests/engine/run/test_attempt.py::test_a_number_too_long_to_store_is_kept_digit_by_digit",
            "not enough values",
        ),
    ),
)
D6 = Mutant(
    "D6",
    "a time outside of the calendar is taken, and breaks every list",
    (
        Edit("retoma.engine.rules.duration:seconds", "if length > LONGEST:", "if False:"),
        Edit(
            "retoma.db.rows:from_microseconds",
            "if not EARLIEST_MICROSECONDS <= value <= LATEST_MICROSECONDS:",
            "if False:",
        ),
        Edit(
            "retoma.db.postgres:Moments.load",
            "return EARLIEST if text",
            "raise\n            return EARLIEST if text",
        ),
    ),
    (
        ByTest(
            "tests/engine/test_far_times.py::test_d6_a_submission_so_far_away_is_refused_and_writes_nothing",
            "DID NOT RAISE|out of range|too large|[Oo]verflow",
        ),
        ByTest(
            "tests/engine/test_far_times.py::test_d6_no_time_in_any_column_keeps_a_list_from_being_read",
            "DataError|OverflowError|ValueError",
        ),
    ),
)
D7 = Mutant(
    "D7",
    "threads that submit wait on each other's event loops",
    (
        Edit(
            "retoma.engine.writing.submitter:Submitter.submit",
            "queue = self._queues.get(loop) or self._queues.setdefault(loop, _Queue(self._database))",
            "self._queues.setdefault(loop, _Queue(self._database))\n"
            "        queue = next(iter(self._queues.values()))",
        ),
    ),
    (
        ByTest(
            "tests/test_threads.py::test_d7_every_thread_is_answered_on_its_own_loop[postgres]",
            "[Tt]imeout",
        ),
    ),
)
D8 = Mutant(
    "D8",
    "a step asked for twice gives the second call the first one's value",
    (Edit("retoma.engine.handlers.steps:Steps.ask", "if step in self._asked:", "if False:"),),
    (
        ByTest(
            "tests/engine/handlers/test_context.py::test_a_step_asked_for_twice_in_one_attempt_is_refused_and_never_bought_again"
        ),
    ),
    cheap=True,
)
D9 = Mutant(
    "D9",
    "what is known of a closure keeps its whole attempt in memory",
    (
        Edit(
            "retoma.engine.isolation.function:is_async",
            "def is_async(",
            "@lru_cache(maxsize=1024)\ndef is_async(",
        ),
    ),
    (
        ByTest(f"{MEMORY}[sqlite-ended_well-done]", "Timeout"),
        ByTest(f"{MEMORY}[postgres-ended_well-done]", "Timeout"),
    ),
)
R1 = Mutant(
    "R1",
    "a child process runs the script of its parent",
    (
        Edit(
            "retoma.engine.isolation.children:_Popen._orders",
            'if not key.startswith("init_main") and key not in unsaid',
            "if key not in unsaid",
        ),
        Edit(
            "retoma.engine.isolation.isolate:check_can_be_loaded",
            "if fn.__module__ in MAIN:",
            "if False:",
        ),
    ),
    (
        ByTest(
            "tests/engine/test_typed_values.py::test_a_child_does_not_run_the_script_of_its_parent",
            "[Aa]ssert|Timeout",
        ),
        ByTest(
            "tests/engine/test_typed_values.py::test_a_sync_job_that_is_only_in_the_script_is_refused_before_it_is_claimed",
            "[Aa]ssert|Timeout",
        ),
    ),
)
R2 = Mutant(
    "R2",
    "a large submission is one transaction",
    (Edit("retoma.engine.run.filling:LARGE", "100_000", "100_000_000"),),
    (
        ByTest(
            "tests/engine/run/test_filling.py::test_no_transaction_of_a_large_batch_keeps_others_waiting",
            "[Aa]ssert|Timeout",
        ),
    ),
)
R3 = Mutant(
    "R3",
    "a claim reads the queues of all kinds",
    (
        Edit(
            "retoma.engine.run.claim_cursor:QueueCursor._choose",
            "if len(self._all) <= FEW:",
            "if True:",
        ),
    ),
    (
        ByTest(
            "tests/engine/test_many_kinds.py::test_e28_a_claim_with_200_kinds_costs_what_it_costs_with_one"
        ),
    ),
)
R4 = Mutant(
    "R4",
    "a wake-up socket that is taken away is never made again",
    (
        Edit(
            "retoma.db.wakeups:_Listening.is_at",
            "return (found.st_dev, found.st_ino) == self._file",
            "return True",
        ),
        Edit("retoma.db.wakeups:_Listening.is_at", "return False", "return True"),
    ),
    (
        ByTest(
            "tests/db/test_wakeups.py::test_a_socket_that_is_taken_away_during_a_wait_is_made_again_within_a_tick",
            "Timeout",
        ),
        ByTest("tests/db/test_wakeups.py::test_a_folder_that_is_taken_away_is_made_again"),
    ),
)
R5 = Mutant(
    "R5",
    "a database on a full disk is ready",
    (
        Edit(
            "retoma.library.free_space:can_write",
            "if free is not None and free < LEAST_FREE:",
            "return\n    if free is not None and free < LEAST_FREE:",
        ),
    ),
    (
        ByTest(
            "tests/chaos/test_disk_full.py::test_a_full_disk_is_not_ready_until_there_is_room",
            "DID NOT RAISE",
        ),
    ),
)
R6 = Mutant(
    "R6",
    "a runner on a full disk leaves when there is room again",
    (
        Edit(
            "retoma.engine.run.runner:RunnerInstance._settled",
            "if self._writer.failing:",
            "if False:",
        ),
    ),
    (
        ByTest(
            "tests/chaos/test_disk_full.py::test_sigterm_ends_a_runner_on_a_full_disk_within_its_grace",
            "nothing has moved|Timeout",
        ),
    ),
)
R7 = Mutant(
    "R7",
    "all saved steps of a job come along with its claim",
    (Edit("retoma.engine.store.claim:INLINE", "256 * 1024", "256 * 1024 * 1024"),),
    (
        ByTest(
            "tests/engine/test_step_memory.py::test_many_jobs_with_large_steps_wake_in_little_memory"
        ),
    ),
)
R8 = Mutant(
    "R8",
    "a connection that is cut is a failure of the job that asked",
    (
        Edit(
            "retoma.engine.run.error_details:is_trouble",
            "isinstance(leaf, Away | Busy | Full)",
            "isinstance(leaf, Busy | Full)",
        ),
    ),
    (
        ByTest(
            "tests/engine/run/test_attempt.py::test_trouble_of_the_database_is_no_failure_of_the_job"
        ),
    ),
)
R9 = Mutant(
    "R9",
    "money and moments are stored as text and come back as text",
    (Edit("retoma.codec:_class_reader", "if wanted in FORMS:", "if False:"),),
    (
        ByTest(
            "tests/engine/test_typed_values.py::test_every_way_returns_the_same_the_first_time_and_after_a_crash",
            "[Uu]nstorable|[Aa]ssert",
        ),
    ),
)
R10 = Mutant(
    "R10",
    "a job on its way back from a broken attempt is started again under the same epoch",
    (
        Edit(
            "retoma.engine.run.running_jobs:RunningJobs.known",
            "return self._attempts.keys() | self._returning",
            "return set(self._attempts)",
        ),
    ),
    (
        ByTest(
            "tests/engine/run/test_runner.py::test_a_job_on_its_way_back_is_not_started_while_unknown_claims_are_looked_for"
        ),
    ),
)
R11 = Mutant(
    "R11",
    "a thread that ends, or that cannot be started, goes unseen",
    (
        Edit(
            "retoma.dispatch.sender:Sender._run",
            "except BaseException as error:",
            "except Exception as error:",
        ),
        Edit("retoma.db.one_thread:OneThread.submit", "if refused:", "if False:"),
        Edit(
            "retoma.engine.loop_thread:LoopThread._run",
            "while not self._stopping:",
            "if not self._stopping:",
        ),
    ),
    (
        ByTest(
            "tests/db/test_database.py::test_what_no_thread_is_found_for_is_refused_and_never_done_later"
        ),
        ByTest(
            "tests/dispatch/test_sender.py::test_a_broker_that_ends_its_thread_is_tried_again",
            "[Aa]ssert|[Ww]arning",
        ),
        ByTest(
            "tests/engine/test_loop_thread.py::test_a_task_that_ends_its_thread_ends_only_itself",
            "[Tt]imeout|[Aa]ssert|[Ww]arning",
        ),
    ),
)
R12 = Mutant(
    "R12",
    "a submitted job refused for an unknown reason takes those of others along",
    (
        Edit(
            "retoma.engine.writing.submitter:_Queue._commit",
            "(isinstance(error, BadRow) or from_driver(error))",
            "isinstance(error, BadRow)",
        ),
    ),
    (
        ByTest(
            "tests/engine/writing/test_submitter.py::test_a_row_refused_for_a_reason_nobody_knows_fails_alone[postgres]"
        ),
    ),
)
R13 = Mutant(
    "R13",
    "a log line that cannot be written keeps a job from ending, and its slot",
    (
        Edit(
            "retoma.engine.log:never_raising",
            "except Exception:",
            "except ZeroDivisionError:",
        ),
    ),
    (
        ByTest(
            "tests/engine/test_log.py::test_jobs_end_although_their_lines_cannot_be_written",
            "[Tt]imeout|No space left",
        ),
    ),
)
U1 = Mutant(
    "U1",
    "an intent that is still being written when its attempt is abandoned is reckoned with by nobody",
    (
        Edit(
            "retoma.engine.handlers.steps:Steps.keep",
            "            self.known[step] = kept\n        await",
            "            pass\n        await",
        ),
    ),
    (
        ByTest(
            "tests/engine/handlers/test_remote.py::test_e6_an_intent_still_being_written_is_looked_for_once_its_attempt_is_abandoned"
        ),
    ),
)

U2 = Mutant(
    "U2",
    "the checker accuses a job that a person has skipped while it was parked",
    (
        Edit(
            "retoma.engine.checker.timelines:intents_end",
            "in (State.DONE, State.SKIPPED) and not parked:",
            "in (State.DONE, State.SKIPPED):",
        ),
    ),
    (
        ByTest(
            "tests/engine/handlers/test_remote.py::test_a_person_may_end_what_waits_for_one_and_the_checker_says_nothing"
        ),
        ByUniverses(100_052, "it is skipped, and nobody saw"),
    ),
)

MUTANTS = (
    *(M01, M02, M03, M04, M05, M06, M07, M08, M09, M10, M11, M12),
    *(M13, M14, M15, M16, M17, M18, M19, M20, M21, M22, M23, M24),
    *(D1, D2, D3, D4, D5, D6, D7, D8, D9),
    *(R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, R11, R12, R13),
    *(U1, U2),
)

__all__ = ["MUTANTS", "ByCell", "Mutant"]
