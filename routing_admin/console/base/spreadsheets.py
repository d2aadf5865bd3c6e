"""Create CSV files that are safe to open in a spreadsheet."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence

from django.http import HttpResponse

from routing_admin.core.documents.json_lines import safe_cell


def csv_response(filename: str, rows: Iterable[Sequence[object]]) -> HttpResponse:
    """Return rows as a CSV download. Text that a spreadsheet would run as a formula is neutralized."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    response.write("\ufeff")  # The byte order mark makes spreadsheets read the file as UTF-8.
    writer = csv.writer(response)
    for row in rows:
        writer.writerow([safe_cell(cell) if isinstance(cell, str) else cell for cell in row])
    return response
