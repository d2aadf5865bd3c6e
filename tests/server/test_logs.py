"""The server's log has one JSON object per line, with the request id and without secrets."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from io import StringIO

import pytest
from django.core.exceptions import BadRequest, PermissionDenied
from django.db import OperationalError

from artifacts.core.errors import StoreUnavailableError
from routing_admin.platform.server import logs
from tests.gateway.serving import served

KEY = "sk-" + "a1B2" * 12


@pytest.fixture
def lines() -> Iterator[StringIO]:
    """Yield the stream to which a logger with the JSON formatter writes."""
    written = StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logs.JsonFormatter())
    handler.addFilter(logs.RedactFilter())
    logger = logging.getLogger("tests.logs")
    logger.addHandler(handler)
    logger.propagate = False
    yield written
    logger.removeHandler(handler)


def test_log_entry_is_one_json_object_with_the_request_id(lines):
    token = logs.request_id.set("req_1")
    logging.getLogger("tests.logs").warning("the disk of %s\nis full", "var")
    logs.request_id.reset(token)
    line = json.loads(lines.getvalue())
    assert lines.getvalue().count("\n") == 1
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "tests.logs",
        "message": "the disk of var\nis full",
        "request_id": "req_1",
    }


def test_key_in_a_message_or_an_error_is_masked(lines):
    try:
        raise ValueError(f"refused {KEY}")
    except ValueError:
        logging.getLogger("tests.logs").exception("with %s", KEY)
    line = json.loads(lines.getvalue())
    assert "ValueError" in line["error"]
    assert KEY not in lines.getvalue()


def test_served_installation_writes_a_json_log(tmp_path):
    with served(tmp_path, settings={"LOG_FORMAT": "json"}) as server:
        with closing(sqlite3.connect(tmp_path / "routing_admin.sqlite3")) as rows:
            rows.execute("ALTER TABLE artifacts_artifact RENAME TO away")
            rows.commit()
        with pytest.raises(OSError, match="HTTP Error 50"):
            server.get("/v1/files")
        text = server.log
    entries = [json.loads(line) for line in text.splitlines()]
    assert {"uvicorn.error"} < {entry["logger"] for entry in entries}
    assert any(entry["level"] == "error" and entry["request_id"].startswith("req_") for entry in entries)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            StoreUnavailableError("The artifact store s3://b has no such bucket. Create it."),
            "has no such bucket. Create it.",
        ),
        (OperationalError("database is locked"), "does not answer: database is locked."),
    ],
)
def test_outage_is_logged_without_traceback_and_bug_with_traceback(lines, error: Exception, sentence: str):
    logger, explain = logging.getLogger("tests.logs"), logs.ExplainFilter()
    logger.addFilter(explain)
    logger.error("readiness check failed", exc_info=error)
    logger.error("a bug", exc_info=ValueError("of ours"))
    logger.removeFilter(explain)
    outage, bug = map(json.loads, lines.getvalue().splitlines())
    assert outage["message"].startswith("readiness check failed: The ")
    assert outage["message"].endswith(sentence)
    assert ("error" in outage, "error" in bug) == (False, True)


@pytest.mark.parametrize("error", [PermissionDenied("editors only"), BadRequest("no such field")])
def test_rejected_request_is_logged_in_one_line_without_a_traceback(error):
    record = logging.LogRecord("django.request", logging.WARNING, "", 0, "Forbidden: %s", ("/users/",), None)
    record.exc_info = (type(error), error, None)
    assert logs.ExplainFilter().filter(record)
    assert logs.RedactFilter().filter(record)
    assert logging.Formatter("%(message)s").format(record) == "Forbidden: /users/"
