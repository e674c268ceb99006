"""Write a table as an XLSX workbook: one sheet, its first row the headings. Nothing in it is calculated."""

import re
import zipfile
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, BinaryIO, Final
from xml.sax.saxutils import escape
from zoneinfo import ZoneInfo

LONGEST_CELL: Final = 32_767  # characters, by the format
EPOCH: Final = datetime(1899, 12, 30, tzinfo=UTC)  # day 0 of a spreadsheet
DAY: Final = 86_400  # seconds
LARGEST_INTEGER: Final = 10**15  # a spreadsheet keeps 15 digits of a number
ILLEGAL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
HEADING, TIME, DAY_ONLY, MONEY = 1, 2, 3, 4  # places among the formats of cells, in STYLES
LEVEL: Final = 6  # of compression
HEAD: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml"

PARTS: Final = {
    "[Content_Types].xml": (
        f'<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{TYPE}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{TYPE}.styles+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{TYPE}.worksheet+xml"/>'
        "</Types>"
    ),
    "_rels/.rels": (
        f'<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
        "</Relationships>"
    ),
    "xl/workbook.xml": (
        f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
        '<sheet name="retoma" sheetId="1" r:id="rId1"/></sheets></workbook>'
    ),
    "xl/_rels/workbook.xml.rels": (
        f'<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="rId2" Type="{OFFICE}/styles" Target="styles.xml"/>'
        "</Relationships>"
    ),
    # Formats 22, 14 and 4 are the spreadsheet's own: each shows them as its language does.
    "xl/styles.xml": (
        f'<styleSheet xmlns="{MAIN}">'
        '<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>'
        '<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>'
        '<fills count="2"><fill><patternFill patternType="none"/></fill>'
        '<fill><patternFill patternType="gray125"/></fill></fills>'
        '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
        '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
        '<cellXfs count="5"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
        '<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/>'
        + "".join(
            f'<xf numFmtId="{each}" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
            for each in (22, 14, 4)
        )
        + '</cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles>'
        "</styleSheet>"
    ),
}


class Workbook:
    """Writes a file page by page. Times stand in `timezone`: a spreadsheet has no zones."""

    def __init__(self, file: BinaryIO, headings: Sequence[str], timezone: str) -> None:
        self._headings = headings
        self._zone = ZoneInfo(timezone)
        self._archive = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL)
        for name, content in PARTS.items():
            self._archive.writestr(name, HEAD + content)
        self._sheet = self._archive.open("xl/worksheets/sheet1.xml", "w")
        self._write(
            f'{HEAD}<worksheet xmlns="{MAIN}"><sheetViews><sheetView workbookViewId="0">'
            '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>'
            "</sheetView></sheetViews><sheetData>"
        )
        self._write(f"<row>{''.join(_text(each, HEADING) for each in headings)}</row>")

    def add(self, page: Sequence[Any]) -> None:
        """Add a row for each of them, with what the headings name."""
        for each in page:
            cells = (_cell(getattr(each, name), self._zone) for name in self._headings)
            self._write(f"<row>{''.join(cells)}</row>")

    def end(self) -> None:
        """Nothing more comes."""
        self._write("</sheetData></worksheet>")
        self._sheet.close()
        self._archive.close()

    def _write(self, text: str) -> None:
        self._sheet.write(text.encode())


def _cell(value: Any, zone: ZoneInfo) -> str:
    match value:
        case None:
            return "<c/>"
        case bool():
            return f'<c t="b"><v>{int(value)}</v></c>'
        case datetime():
            local = value.astimezone(zone).replace(tzinfo=UTC)
            return _number(repr((local - EPOCH).total_seconds() / DAY), TIME)
        case date():
            return _number(str(value.toordinal() - EPOCH.toordinal()), DAY_ONLY)
        case Decimal():
            return _number(f"{value:f}", MONEY)
        case int() | float() if abs(value) < LARGEST_INTEGER:
            return _number(repr(value), 0)
        case _:
            return _text(str(value), 0)


def _number(text: str, style: int) -> str:
    return f'<c s="{style}"><v>{text}</v></c>'


def _text(text: str, style: int) -> str:
    clean = escape(ILLEGAL.sub("", text)[:LONGEST_CELL])
    return f'<c s="{style}" t="inlineStr"><is><t xml:space="preserve">{clean}</t></is></c>'
