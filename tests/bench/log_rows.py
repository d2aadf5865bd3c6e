"""`python -m tests.bench.log_rows FOLDER ROWS`: print the cost of logging plain calls in a new installation as JSON.

A recorder passes the entries to the journal, which writes them to the database that DATABASE_URL names, in batches as
large as those of a busy process. The entries' size includes tables, indexes and the roll-ups for the page Usage.
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
    begin(folder)
    from routing_admin.platform.server.request_id import new_id
    from routing_admin.request_log.journal import Journal

    journal, plain = Journal(), calls()[0]
    before, cpu, started = size(folder), time.process_time(), time.perf_counter()
    for _ in range(rows // BATCH):
        record(journal, plain, [new_id("req_") for _ in range(BATCH)])
        journal.flush()
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    if journal.lost:
        raise RuntimeError(f"{journal.lost} entries were not written")
    written = rows // BATCH * BATCH
    grown = size(folder) - before
    print(json.dumps({"rate": written / seconds, "cpu": cpu / written * 1_000_000, "bytes": grown / written}))


def size(folder: Path) -> int:
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
