"""What documents are classified with, in a box: the files of an attorney's office, and OpenRouter."""

from retoma.sandbox.documents.office import docx_of, docx_with, zip_of
from retoma.sandbox.documents.openrouter import AWAY, KEY, MODEL, MODELS, fingerprint
from retoma.sandbox.documents.papers import ENDS, LABELS, Odd, Paper, Papers
from retoma.sandbox.documents.pdf import pdf_of
from retoma.sandbox.documents.services import LATENCY, build_service
from retoma.sandbox.quotes.services import paid_twice

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
