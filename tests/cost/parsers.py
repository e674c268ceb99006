"""Which module calls a parser, and why what it reads cannot do harm: a family feeds it, or it is ours."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.house.files import SOURCE
from tests.house.test_seams import imported_names

PARSERS: Final = frozenset(
    [
        *("json.load", "json.loads", "json.JSONDecoder", "csv.reader", "csv.DictReader"),
        *("zipfile.ZipFile", "tarfile.open", "zlib.decompress", "zlib.decompressobj"),
        *("gzip.decompress", "tomllib.load", "tomllib.loads", "pickle.load", "pickle.loads"),
        *("pickle.Unpickler", "selectolax.lexbor.LexborHTMLParser", "numpy.frombuffer"),
        *("xml.parsers.expat.ParserCreate", "pypdf.PdfReader", "pypdfium2.PdfDocument"),
        *("email.utils.parsedate_to_datetime", "base64.b64decode", "codecs.getincrementaldecoder"),
        *("python_multipart.MultipartParser", "urllib.parse.unquote_to_bytes"),
        *("urllib.parse.parse_qs", "urllib.parse.parse_qsl"),
    ]
)  # fmt: skip
# Whatever is called of them reads what somebody wrote.
MODULES: Final = (
    *("bz2.", "lzma.", "xml.", "html.parser.", "http.cookies.", "email.parser."),
    *("email.message_from_", "marshal.", "plistlib.", "configparser.", "shelve.", "yaml."),
    *("msgpack.", "PIL.", "openpyxl.", "docx.", "bs4.", "pypdf.", "pypdfium2."),
    *("numpy.load", "numpy.fromstring", "ast.literal_eval", "gzip.open", "gzip.GzipFile"),
    *("csv.Sniffer", "dill.", "lxml."),
)
# A door whose families feed the module.
COVERED: Final[Mapping[str, str]] = {
    "apps/ads/intake.py": "what is pasted",
    "apps/documents/clients/archives.py": "an archive",
    "apps/readers/docx.py": "a document, DOCX",
    "apps/documents/clients/multipart.py": "a form with files",
    "apps/readers/pdf.py": "a document, PDF",
    "apps/readers/plain.py": "a document, HTML",
    "apps/zips.py": "an archive",
    "apps/embeddings/providers/http.py": "vectors",
    "apps/matches/clients/parsers/reading.py": "the page of a match",
    "apps/quotes/clients/reading.py": "the page of a shop",
    "apps/spreadsheets.py": "a spreadsheet",
    "apps/tables.py": "a table of quotes",
    "apps/uploads.py": "POST /quotes/import",
    "dispatch/message.py": "a message of Celery",
    "engine/bounded_json.py": "an answer, JSON",
    "outbound/sorting.py": "header retry-after of an answer",
    "outbound/unpack.py": "an answer, packed",
    "secret/redact.py": "a line of the log",
    "services/worker/adapters.py": "the page of ads, gallery",
    "services/writer/items.py": "the source of a writer",
    "web/body.py": "POST /api/jobs",
    "web/bounds.py": "query",
    "web/cursor.py": "query",
    "web/pages/route.py": "POST /jobs/orders",
}
# What a module reads that no stranger has written, or not more of it than a line.
OURS: Final[Mapping[str, tuple[str, ...]]] = {
    "a column that we wrote": (
        *("apps/ads/store/rows.py", "apps/documents/store/rows.py", "apps/quotes/store.py"),
        *("apps/matches/store/rows.py", "apps/embeddings/questions.py", "codec.py"),
        *("apps/embeddings/providers/ngrams.py", "apps/embeddings/vectors/matrix.py"),
        *("apps/embeddings/store/documents.py", "apps/embeddings/vectors/pgvector.py"),
        "apps/embeddings/export.py",
        *("apps/embeddings/vectors/search.py", "engine/checker/__init__.py", "engine/cost.py"),
        *("engine/store/evidence.py", "engine/store/filling.py", "engine/store/look.py"),
        *("engine/store/reuse.py", "engine/store/schedules.py", "cli/desk.py", "cli/jobs.py"),
        *("cli/reuse.py", "web/pages/job.py", "web/replay.py", "services/writer/target.py"),
    ),
    "a file that we wrote": (
        *("backup.py", "bundle.py", "engine/ledger.py", "services/worker/logbook.py"),
        *("services/worker/misbehave.py", "services/worker/results.py", "words/catalogue.py"),
        *("services/worker/session.py", "cli/boxed_world.py", "web/workbook.py"),
    ),
    "what the operator sets, or names on the command line": (
        *("apps/ads/adopt.py", "apps/quotes/adopt.py", "db/postgres.py", "db/sqlite.py"),
        *("engine/price.py", "settings.py", "shelves.py", "vault/keys.py"),
        *("apps/matches/sites.py", "services/writer/desk.py"),
    ),
    "an answer of a child, which knows no class of its own": (
        *("engine/children.py", "engine/isolate.py"),
    ),
    "a vector that a package returned, which the operator installed": (
        "apps/embeddings/providers/build.py",
    ),
    "at most 20,000 characters of a model's answer": ("apps/documents/clients/openrouter.py",),
    "requests of our own tests and demo": (
        *("sandbox/box.py", "sandbox/documents/office.py", "sandbox/documents/openrouter.py"),
        *(
            "sandbox/embeddings/openai.py",
            "sandbox/embeddings/others.py",
            "sandbox/matches/site.py",
        ),
        *("sandbox/quotes/messages.py", "sandbox/quotes/search.py"),
    ),
}


def who_parses(folder: Path = SOURCE) -> Iterator[tuple[str, str]]:
    """A module, and the parser that it names."""
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = imported_names(tree)
        for node in ast.walk(tree):
            name = _dotted(node, names)
            if name in PARSERS or name.startswith(MODULES):
                yield path.relative_to(folder).as_posix(), name


def _dotted(node: ast.AST, names: Mapping[str, str]) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return ""
    return ".".join([names[node.id], *reversed(parts)])
