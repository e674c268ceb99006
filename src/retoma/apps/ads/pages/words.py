"""What the fields and events of the document are called where people read them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from retoma.apps.ads.model import Event
from retoma.web.pages.view import View
from retoma.words import Said, say

MILLISECONDS: Final = "_ms"  # how the name of a length of time ends
PERCENT: Final = "_pct"  # and that of a share

FIELDS: Final[Mapping[str, Said]] = {
    "ads_count": say("Ads"),
    "attempt": say("Attempt"),
    "api_key": say("API key"),
    "canceled_by": say("Canceled by"),
    "created_at": say("Created"),
    "created_by": say("Created by"),
    "data_url": say("Where the ads are"),
    "date_end": say("Last day"),
    "date_start": say("First day"),
    "duration_ms": say("Duration"),
    "error": say("Error"),
    "error_code": say("Code"),
    "error_message": say("Why"),
    "failed_count": say("Refused ads"),
    "finished_at": say("End"),
    "generation": say("Generation"),
    "host": say("Host"),
    "languages": say("Languages"),
    "max_retries": say("Retries before it fails"),
    "media_type": say("Media type"),
    "mission_id": say("Mission"),
    "name": say("Name"),
    "new_proxy": say("Proxy after"),
    "old_proxy": say("Proxy before"),
    "password": say("Password"),
    "phase": say("Phase"),
    "port": say("Port"),
    "previous_checkpoint": say("Checkpoint before"),
    "processed": say("Handled ads"),
    "progress_pct": say("Progress"),
    "proxy_id": say("Id of the proxy"),
    "proxy_name": say("Proxy"),
    "proxy_used": say("Proxy"),
    "queued_at": say("Queued"),
    "queued_by": say("Queued by"),
    "reason": say("Reason"),
    "retry_count": say("Retries"),
    "session_limit": say("Missions in a session"),
    "started_at": say("Began"),
    "storage_domain": say("Storage domain"),
    "success_count": say("Stored ads"),
    "total": say("All ads"),
    "total_duration_ms": say("Total duration"),
    "url": say("Address"),
    "username": say("User name"),
    "vendor": say("Vendor"),
    "waited_ms": say("Waited"),
    "worker_data_url": say("Where the ads are"),
    "worker_id": say("Id of the worker"),
    "worker_job_id": say("Job at the worker"),
    "worker_name": say("Worker"),
    "writer_job_id": say("Job at the writer"),
}
EVENTS: Final[Mapping[str, Said]] = {
    Event.MISSION_QUEUED: say("In the queue"),
    Event.MISSION_ASSIGNED: say("Assigned to a worker"),
    Event.MISSION_CANCELED: say("Mission canceled"),
    Event.SESSION_STARTED: say("Session started"),
    Event.SESSION_READY: say("Session ready"),
    Event.SESSION_FAILED: say("Session failed"),
    Event.SESSION_TERMINATED: say("Session ended"),
    Event.SCRAPE_STARTED: say("Extraction started"),
    Event.SCRAPE_PROGRESS: say("Extraction in progress"),
    Event.SCRAPE_COMPLETED: say("Extraction completed"),
    Event.SCRAPE_FAILED: say("Extraction failed"),
    Event.SCRAPE_EMPTY: say("Extraction found no ads"),
    Event.WRITER_STARTED: say("Storage started"),
    Event.WRITER_PROGRESS: say("Storage in progress"),
    Event.WRITER_COMPLETED: say("Storage completed"),
    Event.WRITER_FAILED: say("Storage failed"),
    Event.MISSION_COMPLETED: say("Mission completed"),
    Event.MISSION_FAILED: say("Mission failed"),
    Event.RETRY_TRIGGERED: say("Retry scheduled"),
    Event.PROXY_ROTATED: say("Proxy changed"),
}

# The document's meanings of its codes for whoever reads English: the Portuguese of each is the document's own.
MEANINGS: Final[Mapping[str, Said]] = {
    "ERROR100": say("Generic session error"),
    "ERROR101": say("Session timed out"),
    "ERROR102": say("Session stuck"),
    "ERROR103": say("Session disconnected"),
    "ERROR104": say("Session retries exhausted"),
    "ERROR200": say("Scrape job failed"),
    "ERROR201": say("Job canceled"),
    "ERROR202": say("Job timed out"),
    "ERROR203": say("Scrape retries exhausted"),
    "ERROR300": say("Generic writer error"),
    "ERROR301": say("Connection refused"),
    "ERROR302": say("Connection timed out"),
    "ERROR303": say("Schema error"),
    "ERROR304": say("Writer retries exhausted"),
    "ERROR400": say("S3 or storage error"),
    "ERROR401": say("Invalid S3 credentials"),
    "ERROR500": say("Internal error"),
    "ERROR501": say("No proxy available"),
    "ERROR502": say("Worker unavailable"),
}

# Why a session ended, where that is no code.
REASONS: Final[Mapping[str, Said]] = {
    "session_limit": say("the session had done its missions"),
    "finished": say("no mission was left"),
    "stopped": say("stopped or deactivated"),
    "declared_gone": say("declared lost by a person"),
}


def field_name(view: View, name: str) -> str:
    """What nobody has a word for is called by its own name."""
    return view.tell(FIELDS.get(name, name))


def event_name(view: View, event: str) -> str:
    return view.tell(EVENTS.get(event, event))


def details(view: View, told: Mapping[str, Any]) -> str:
    """What fits a line, in words."""
    return " · ".join(f"{name} {value}" for name, value in _plain(view, told))


def _plain(view: View, told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in told.items():
        told_twice = name == "proxy_name" and "old_proxy" in told
        if value is None or told_twice or isinstance(value, dict | list):
            continue
        yield field_name(view, name), _value(view, name, value)


def _value(view: View, name: str, value: Any) -> str:
    if isinstance(value, bool):
        return view.tell(say("yes") if value else say("no"))
    if not isinstance(value, int | float):
        said = str(value)
        return view.tell(REASONS[said]) if said in REASONS else view.tell_stored(said)
    if name.endswith(MILLISECONDS):
        return view.lasts(value / 1000)
    return view.percent(value / 100) if name.endswith(PERCENT) else view.number(value)
