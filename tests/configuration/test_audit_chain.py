"""The audit log is append-only and has no gaps, and each entry contains the hash of the previous entry."""

from __future__ import annotations

import threading
from io import StringIO

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction

from capabilities.actors import Actor, AuditedAction
from routing_admin.configuration.audit import NOTED, verify_audit, write_event
from routing_admin.core.audit import AuditEntry, AuditHead, digest_entry, verify_chain
from routing_admin.models import AuditEvent
from routing_admin.platform.databases.append_only import TABLE, missing_triggers, refuse_changes, statements_to_allow

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
ADA = Actor("person", "ada", "192.0.2.7")


@pytest.fixture
def five_entries() -> None:
    for number in range(1, 6):
        write_event(ADA, AuditedAction("key.issue", "agent", f"a{number}", {"share": 1.0, "名": "文"}))


def run_without_triggers(statement: str) -> None:
    """Run SQL without the triggers, as the database's owner could."""
    with connection.cursor() as cursor:
        for sql in [*statements_to_allow(connection.vendor), *statement.split(";")]:
            cursor.execute(sql)
    refuse_changes()


def problems(*heads: AuditHead) -> tuple[str, ...]:
    return verify_audit(heads).problems


def test_audit_entries_are_numbered_without_gaps_and_chained(five_entries: None) -> None:
    """Even a rolled-back transaction leaves no gap."""
    with transaction.atomic():
        write_event(ADA, AuditedAction("key.revoke"))
        transaction.set_rollback(True)
    write_event(ADA, AuditedAction("user.sign_in_failed"))
    rows = list(AuditEvent.objects.order_by("number"))
    assert [row.number for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row.previous for row in rows[1:]] == [row.sha256 for row in rows[:-1]]
    assert problems() == ()


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE {TABLE} SET actor = 'eve' WHERE number = 3",
        f"DELETE FROM {TABLE} WHERE number = 5",
        f"INSERT INTO {TABLE} SELECT * FROM {TABLE} WHERE number = 3",
    ],
)
def test_database_rejects_changes_of_audit_entries(five_entries: None, statement: str) -> None:
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement.replace("INSERT INTO", "INSERT OR REPLACE INTO" * (connection.vendor == "sqlite")))
    assert problems() == ()


def test_changed_audit_entry_is_reported_by_its_number(five_entries: None) -> None:
    run_without_triggers(f"UPDATE {TABLE} SET actor = 'eve' WHERE number = 3")
    assert problems() == ("Number 3 was changed: what it says does not fit its hash.",)


def test_changed_audit_entry_with_a_recomputed_hash_is_detected(five_entries: None) -> None:
    """The entry that follows the changed one still contains the old hash."""
    row = AuditEvent.objects.get(number=3)
    entry = AuditEntry(3, "2026-01-01T00:00:00.000000+00:00", "person", "eve", "", "", "key.issue", "", "")
    new_digest = digest_entry(entry)
    run_without_triggers(f"UPDATE {TABLE} SET sha256 = '{new_digest}' WHERE number = {row.number}")
    assert any("Number 4 does not follow" in problem for problem in problems())


def test_missing_audit_entries_are_reported_by_their_numbers(five_entries: None) -> None:
    run_without_triggers(f"DELETE FROM {TABLE} WHERE number = 2")
    assert problems() == ("Number 2 is missing.",)
    run_without_triggers(f"DELETE FROM {TABLE} WHERE number = 3")
    assert problems() == ("Numbers 2 to 3 are missing.",)


def test_swapped_audit_entries_are_reported_by_their_old_numbers(five_entries: None) -> None:
    run_without_triggers(
        f"UPDATE {TABLE} SET number = -1 WHERE number = 2; UPDATE {TABLE} SET number = 2 WHERE number = 4;"
        f"UPDATE {TABLE} SET number = 4 WHERE number = -1"
    )
    problems_found = problems()
    assert "Number 2 says what was written as number 4: lines were swapped." in problems_found
    assert "Number 4 says what was written as number 2: lines were swapped." in problems_found


def test_swapped_contents_of_two_audit_entries_are_detected(five_entries: None) -> None:
    """Swapping the contents of two entries leaves their numbers and hashes unchanged."""
    renumbered = [
        AuditEntry(number, "2026-01-01", "person", "ada", "", "", "key.issue", "agent", name)
        for number, name in enumerate(("one", "two"), start=1)
    ]
    first = AuditEntry(**{**audit_fields(renumbered[0]), "sha256": digest_entry(renumbered[0])})
    second = AuditEntry(**{**audit_fields(renumbered[1]), "previous": first.sha256})
    second = AuditEntry(**{**audit_fields(second), "sha256": digest_entry(second)})
    relabelled_first = AuditEntry(**{**audit_fields(first), "object_name": "two"})
    relabelled_second = AuditEntry(**{**audit_fields(second), "object_name": "one"})
    assert verify_chain([first, second]).problems == ()
    assert [problem[:44] for problem in verify_chain([relabelled_first, relabelled_second]).problems] == [
        "Number 1 says what was written as number 2: ",
        "Number 2 says what was written as number 1: ",
    ]


def audit_fields(entry: AuditEntry) -> dict[str, object]:
    return {name: getattr(entry, name) for name in AuditEntry.__slots__}


def test_truncated_audit_chain_is_detected_by_a_recorded_head(five_entries: None) -> None:
    """The newest hash is recorded in a file in the data directory, or in a copy that is passed to `verify_audit`."""
    output = StringIO()
    call_command("audit_verify", stdout=output)
    noted = output.getvalue().split()[-1]
    assert (settings.DATA_DIR / NOTED).read_text().split()[-1] == noted
    run_without_triggers(f"DELETE FROM {TABLE} WHERE number > 3")
    err = StringIO()
    with pytest.raises(SystemExit) as exit_info:
        call_command("audit_verify", stdout=StringIO(), stderr=err)
    assert exit_info.value.code == 1
    assert "the newest is number 3, and number 5 was noted before. Numbers 4 to 5 are missing." in err.getvalue()
    (settings.DATA_DIR / NOTED).unlink()
    assert problems() == ()
    number, _, sha256 = noted.partition(":")
    assert problems(AuditHead(int(number), sha256))


def test_rewritten_audit_chain_is_detected_by_a_recorded_head(five_entries: None) -> None:
    """If the whole chain was recomputed, its newest hash differs from the recorded one."""
    assert "was rewritten" in problems(AuditHead(5, "f" * 64))[0]


def test_missing_audit_trigger_is_detected_and_recreated(five_entries: None) -> None:
    """`refuse_changes`, which runs after every migration, recreates missing triggers."""
    with connection.cursor() as cursor:
        for sql in statements_to_allow(connection.vendor):
            cursor.execute(sql)
    assert "refuses changes" in problems()[0]
    refuse_changes()
    assert missing_triggers() == []


@pytest.mark.django_db(transaction=True, databases=["default", "logs"])
def test_concurrent_audit_writers_leave_no_gap() -> None:
    def write() -> None:
        try:
            for _ in range(5):
                write_event(ADA, AuditedAction("key.issue"))
        finally:
            connection.close()

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    verdict = verify_audit()
    assert (verdict.count, verdict.problems) == (20, ())
