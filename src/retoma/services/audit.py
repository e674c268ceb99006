"""The audit log: who did what; and what is known of a job or a batch, signed."""

from retoma.engine.query import PAGE, AuditLine, AuditSearch, Spot, Subject

__all__ = ["PAGE", "AuditLine", "AuditSearch", "Spot", "Subject"]
