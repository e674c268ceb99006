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
    "apps/ads/service/intake.py": "what is pasted",
    "apps/documents/clients/archives.py": "an archive",
    "toolkit/readers/docx.py": "a document, DOCX",
    "apps/documents/clients/multipart.py": "a form with files",
    "toolkit/readers/pdf.py": "a document, PDF",
    "toolkit/readers/plain.py": "a document, HTML",
    "toolkit/zips.py": "an archive",
    "apps/embeddings/providers/http.py": "vectors",
    "apps/matches/clients/parsers/reading.py": "the page of a match",
    "apps/quotes/clients/reading.py": "the page of a shop",
    "toolkit/spreadsheets.py": "a spreadsheet",
    "toolkit/tables.py": "a table of quotes",
    "toolkit/uploads.py": "POST /quotes/import",
    "dispatch/message.py": "a message of Celery",
    "engine/isolation/bounded_json.py": "an answer, JSON",
    "outbound/failure_types.py": "header retry-after of an answer",
    "outbound/unpack.py": "an answer, packed",
    "secret/redact.py": "a line of the log",
    "programs/worker/adapters.py": "the page of ads, gallery",
    "programs/writer/items.py": "the source of a writer",
    "web/body.py": "POST /api/jobs",
    "web/bounds.py": "query",
    "web/cursor.py": "query",
    "web/pages/route.py": "POST /jobs/orders",
}
# What a module reads that no stranger has written, or not more of it than a line.
OURS: Final[Mapping[str, tuple[str, ...]]] = {
    "a column that we wrote": (
        "apps/documents/service/database.py",
        "apps/documents/store/rows.py",
        "apps/embeddings/export.py",
        "apps/embeddings/providers/ngrams.py",
        "apps/embeddings/questions.py",
        "apps/embeddings/vectors/matrix.py",
        "apps/embeddings/vectors/pgvector.py",
        "apps/embeddings/vectors/search.py",
        "codec.py",
        "console/kit.py",
        "db/rows.py",
        "engine/checker/__init__.py",
        "engine/rules/cost.py",
        "engine/store/evidence.py",
        "engine/store/filling.py",
        "engine/store/look.py",
        "engine/store/reuse.py",
        "engine/store/schedules.py",
        "programs/writer/target.py",
        "services/jobs.py",
        "services/money.py",
        "web/pages/job.py",
        "web/replay.py",
    ),
    "a file that we wrote": (
        *(
            "backup.py",
            "bundle.py",
            "engine/checker/effect_ledger.py",
            "programs/worker/logbook.py",
        ),
        *("programs/worker/misbehave.py", "programs/worker/results.py", "words/catalogue.py"),
        *("programs/worker/session.py", "demo/boxed_world.py", "web/workbook.py"),
    ),
    "what the operator sets, or names on the command line": (
        *(
            "apps/ads/service/adoption.py",
            "apps/quotes/adopt.py",
            "db/postgres.py",
            "db/sqlite.py",
        ),
        *("engine/rules/price.py", "settings.py", "blob_stores.py", "vault/keys.py"),
        *("apps/matches/sites.py", "programs/writer/desk.py"),
    ),
    "our own source": ("cli/noun.py",),
    "an answer of a child, which knows no class of its own": (
        *("engine/isolation/children.py", "engine/isolation/isolate.py"),
    ),
    "a vector that a package returned, which the operator installed": (
        "apps/embeddings/providers/build.py",
    ),
    "at most 20,000 characters of a model's answer": ("apps/documents/clients/openrouter.py",),
    "requests of our own tests and demo": (
        *(
            "sandbox/box.py",
            "apps/documents/sandbox/office.py",
            "apps/documents/sandbox/openrouter.py",
        ),
        *(
            "apps/embeddings/sandbox/openai.py",
            "apps/embeddings/sandbox/others.py",
            "apps/matches/sandbox/site.py",
        ),
        *("apps/quotes/sandbox/messages.py", "apps/quotes/sandbox/search.py"),
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
