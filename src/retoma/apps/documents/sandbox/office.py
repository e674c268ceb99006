"""DOCX files by a small writer of our own, and other things that lie in archives."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape

TYPES: Final = (
    '<?xml version="1.0" encoding="UTF-8"?><Types'
    ' xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default'
    ' Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/'
    'vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
RELATIONS: Final = (
    '<?xml version="1.0" encoding="UTF-8"?><Relationships'
    ' xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1"'
    ' Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"'
    ' Target="word/document.xml"/></Relationships>'
)
NAMES: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
THEN: Final = (
    1980,
    1,
    1,
    0,
    0,
    0,
)  # the oldest that an archive can say: files are always the same


def docx_of(lines: Sequence[str]) -> bytes:
    return docx_with(
        "".join(
            f'<w:p><w:r><w:t xml:space="preserve">{escape(line)}</w:t></w:r></w:p>'
            for line in lines
        )
    )


def docx_with(body: str, head: str = "") -> bytes:
    """`head`: what stands before the document, such as a declaration of entities."""
    document = (
        f'<?xml version="1.0" encoding="UTF-8"?>{head}<w:document xmlns:w="{NAMES}">'
        f"<w:body>{body}</w:body></w:document>"
    )
    parts = {
        "[Content_Types].xml": TYPES.encode(),
        "_rels/.rels": RELATIONS.encode(),
        "word/document.xml": document.encode(),
    }
    return zip_of(parts)


def zip_of(parts: Mapping[str, bytes]) -> bytes:
    """An archive of these, the same bytes every time."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            entry = zipfile.ZipInfo(name, THEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return file.getvalue()
