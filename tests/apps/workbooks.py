"""XLSX files as a spreadsheet writes them: shared strings, gaps, types of cells; and hostile ones."""

import io
import zipfile
from collections.abc import Sequence
from typing import Any

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
WORKBOOK = (
    f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
    '<sheet name="hidden" sheetId="1" state="hidden" r:id="rId9"/>'
    '<sheet name="Planilha1" sheetId="2" r:id="rId1"/></sheets></workbook>'
)
RELATIONS = (
    f'<Relationships xmlns="{PACKAGE}">'
    f'<Relationship Id="rId9" Type="{OFFICE}/worksheet" Target="worksheets/none.xml"/>'
    f'<Relationship Id="rId1" Type="{OFFICE}/worksheet" Target="/xl/worksheets/sheet1.xml"/>'
    f'<Relationship Id="rId2" Type="{OFFICE}/sharedStrings" Target="sharedStrings.xml"/>'
    "</Relationships>"
)


def workbook(sheet: str, strings: str = "", **parts: str | bytes) -> bytes:
    """A file with this sheet and these shared strings; `parts` replace others by the end of their names."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", parts.get("workbook", WORKBOOK))
        archive.writestr("xl/_rels/workbook.xml.rels", parts.get("relations", RELATIONS))
        archive.writestr("xl/sharedStrings.xml", f'<sst xmlns="{MAIN}">{strings}</sst>')
        archive.writestr(
            "xl/worksheets/sheet1.xml",
            f'<worksheet xmlns="{MAIN}"><sheetData>{sheet}</sheetData></worksheet>',
        )
    return out.getvalue()


def of_rows(rows: Sequence[Sequence[Any]]) -> bytes:
    """As Excel writes it: each text once, cells by their number; what is empty is not there."""
    texts: dict[str, int] = {}
    lines = []
    for number, row in enumerate(rows, start=1):
        cells = []
        for column, value in enumerate(row):
            place = f"{chr(65 + column)}{number}"
            if isinstance(value, bool):
                cells.append(f'<c r="{place}" t="b"><v>{int(value)}</v></c>')
            elif isinstance(value, int | float):
                cells.append(f'<c r="{place}" s="1"><v>{value}</v></c>')
            elif str(value).startswith("#"):
                cells.append(f'<c r="{place}" t="e"><v>{value}</v></c>')
            elif value:
                at = texts.setdefault(value, len(texts))
                cells.append(f'<c r="{place}" t="s"><v>{at}</v></c>')
        if cells:
            lines.append(f'<row r="{number}">{"".join(cells)}</row>')
    strings = "".join(f"<si><t>{escaped(each)}</t></si>" for each in texts)
    return workbook("".join(lines), strings)


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
