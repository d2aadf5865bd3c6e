"""`python -m tests.bench.log_rows FOLDER ROWS`: what the log of a new installation takes of plain calls, as JSON.

They go through a recorder into the journal, which writes them in batches as those of a busy process, where DATABASE_URL
says. Their bytes are those of tables and indexes, with the sums that Usage reads.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from tests.bench.bench_journal import BATCH, calls, record
from tests.bench.bench_pages import begin

TABLES = ("requestlog", "attemptlog", "usagesum")


def main(folder: Path, rows: int) -> None:
    """Prints rows a second by the clock, microseconds of this process's processor for each, and bytes for each."""
    begin(folder)
    from routing_admin.platform.server.request_id import new_id
    from routing_admin.request_log.journal import Journal

    journal, plain = Journal(), calls()[0]
    before, cpu, began = size(folder), time.process_time(), time.perf_counter()
    for _ in range(rows // BATCH):
        record(journal, plain, [new_id("req_") for _ in range(BATCH)])
        journal.flush()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    if journal.lost:
        raise RuntimeError(f"{journal.lost} entries were not written")
    written = rows // BATCH * BATCH
    grown = size(folder) - before
    print(json.dumps({"rate": written / seconds, "cpu": cpu / written * 1_000_000, "bytes": grown / written}))


def size(folder: Path) -> int:
    """The bytes of the log."""
    from django.db import connections

    from routing_admin.platform.databases.router import LOGS

    with connections[LOGS].cursor() as cursor:
        if connections[LOGS].vendor == "sqlite":
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return (folder / "logs.sqlite3").stat().st_size
        cursor.execute(
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class"
            " WHERE relkind = 'r' AND relname SIMILAR TO %s",
            [f"routing_admin_({'|'.join(TABLES)})%"],
        )
        return int(cursor.fetchone()[0])


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
