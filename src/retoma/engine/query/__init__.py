"""Every question about jobs. Nothing here writes, and nothing counts history."""

from retoma.engine.query.audit import (
    AuditLine,
    AuditPage,
    AuditSearch,
    Spot,
    search_audit,
)
from retoma.engine.query.batches import BatchSeen, Pace, batch_pace, get_batch, list_batches
from retoma.engine.query.counters import (
    count_codes,
    count_jobs,
    count_kinds,
    refused_writes,
)
from retoma.engine.query.dead import list_dead
from retoma.engine.query.disk import Disk, Pass, disk
from retoma.engine.query.evidence import EvidenceSeen, job_evidence
from retoma.engine.query.health import Health, health
from retoma.engine.query.held import QUIET, Stand, Stuck, count_stuck, funnel, stuck
from retoma.engine.query.in_flight import OpenJob, OpenStep, open_jobs
from retoma.engine.query.jobs import (
    PAGE,
    AttemptSeen,
    Event,
    JobSeen,
    StepSeen,
    job_attempts,
    job_events,
    job_steps,
    list_jobs,
    see_job,
)
from retoma.engine.query.limits import LimitSeen, list_limits
from retoma.engine.query.meter import (
    ENDS,
    Line,
    Meter,
    Sum,
    read_lines,
    read_meter,
    stuck_by_kind,
)
from retoma.engine.query.pace import Durations, Minute, durations, throughput
from retoma.engine.query.page import checked as page_of
from retoma.engine.query.reasons import explain
from retoma.engine.query.runners import RunnerSeen, list_runners
from retoma.engine.query.search import (
    Cause,
    Count,
    DeadGroup,
    DeadGroups,
    Page,
    Search,
    count_search,
    dead_causes,
    dead_groups,
    search_ids,
    search_jobs,
)
from retoma.engine.query.whole import Piece, Subject, whole

__all__ = [
    "ENDS",
    "PAGE",
    "QUIET",
    "AttemptSeen",
    "AuditLine",
    "AuditPage",
    "AuditSearch",
    "BatchSeen",
    "Cause",
    "Count",
    "DeadGroup",
    "DeadGroups",
    "Disk",
    "Durations",
    "Event",
    "EvidenceSeen",
    "Health",
    "JobSeen",
    "LimitSeen",
    "Line",
    "Meter",
    "Minute",
    "OpenJob",
    "OpenStep",
    "Pace",
    "Page",
    "Pass",
    "Piece",
    "RunnerSeen",
    "Search",
    "Spot",
    "Stand",
    "StepSeen",
    "Stuck",
    "Subject",
    "Sum",
    "batch_pace",
    "count_codes",
    "count_jobs",
    "count_kinds",
    "count_search",
    "count_stuck",
    "dead_causes",
    "dead_groups",
    "disk",
    "durations",
    "explain",
    "funnel",
    "get_batch",
    "health",
    "job_attempts",
    "job_events",
    "job_evidence",
    "job_steps",
    "list_batches",
    "list_dead",
    "list_jobs",
    "list_limits",
    "list_runners",
    "open_jobs",
    "page_of",
    "read_lines",
    "read_meter",
    "refused_writes",
    "search_audit",
    "search_ids",
    "search_jobs",
    "see_job",
    "stuck",
    "stuck_by_kind",
    "throughput",
    "whole",
]
