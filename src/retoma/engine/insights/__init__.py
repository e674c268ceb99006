"""Every question about jobs. Nothing here writes, and nothing counts history."""

from retoma.engine.insights.audit import (
    AuditLine,
    AuditPage,
    AuditSearch,
    Spot,
    search_audit,
)
from retoma.engine.insights.batches import BatchSeen, Pace, batch_pace, get_batch, list_batches
from retoma.engine.insights.counters import (
    count_codes,
    count_jobs,
    count_kinds,
    refused_writes,
)
from retoma.engine.insights.dead import list_dead
from retoma.engine.insights.disk import Disk, Pass, disk
from retoma.engine.insights.evidence import EvidenceSeen, job_evidence
from retoma.engine.insights.health import Health, health
from retoma.engine.insights.held import QUIET, Stand, Stuck, count_stuck, funnel, stuck
from retoma.engine.insights.in_flight import OpenJob, OpenStep, open_jobs
from retoma.engine.insights.jobs import (
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
from retoma.engine.insights.limits import LimitSeen, list_limits
from retoma.engine.insights.meter import (
    ENDS,
    Line,
    Meter,
    Sum,
    read_lines,
    read_meter,
    stuck_by_kind,
)
from retoma.engine.insights.pace import Durations, Minute, durations, throughput
from retoma.engine.insights.page import checked as page_of
from retoma.engine.insights.reasons import explain
from retoma.engine.insights.runners import RunnerSeen, list_runners
from retoma.engine.insights.search import (
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
from retoma.engine.insights.whole import Piece, Subject, whole

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
