"""What documents are classified with, in a box: the files of an attorney's office, and OpenRouter."""

from retoma.apps.documents.sandbox.office import docx_of, docx_with, zip_of
from retoma.apps.documents.sandbox.openrouter import AWAY, KEY, MODEL, MODELS, fingerprint
from retoma.apps.documents.sandbox.papers import ENDS, LABELS, Odd, Paper, Papers
from retoma.apps.documents.sandbox.pdf import pdf_of
from retoma.apps.documents.sandbox.services import LATENCY, build_service
from retoma.sandbox.box import paid_twice

__all__ = [
    "AWAY",
    "ENDS",
    "KEY",
    "LABELS",
    "LATENCY",
    "MODEL",
    "MODELS",
    "Odd",
    "Paper",
    "Papers",
    "build_service",
    "docx_of",
    "docx_with",
    "fingerprint",
    "paid_twice",
    "pdf_of",
    "zip_of",
]
