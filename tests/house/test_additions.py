"""What is added is added everywhere: CONTRIBUTING.md has the steps, and what would be forgotten is found here.

A protocol, a host and a file type stand in several tables each; the tables are compared with one another. Pages are
held to theirs by `tests/ui/test_every_page.py`, `tests/console/test_counted_pages.py` and `tests/permissions`, faults
by `tests/fallback/test_fault_outcomes.py` and `test_fault_matrix.py` beside it.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

from artifacts.core.detection.extensions import EXTENSIONS_OF_MIME
from artifacts.core.detection.signatures import SIGNATURES
from capabilities.core.delivery import limits
from capabilities.core.operations.table import OPERATIONS
from capabilities.core.permissions import CALLS as CALL_SCOPES
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.providers.presets import PRESETS
from capabilities.core.providers.quirks import ALL
from capabilities.core.texts.friendly import FORMAT_OF
from routing_admin.core.files.endpoints import CALLS
from routing_admin.core.files.seed_export import SPOKEN
from routing_admin.request_log.operations import OPERATION_NAMES
from tests.artifacts.samples import SAMPLES
from tests.lab.operations import PATHS
from tests.lab.operations import SPOKEN as PLAYED
from tests.lab.received_requests import READERS
from tests.lab.server import BASES
from tests.lab.shapes import VENDORS

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "capabilities" / "core" / "protocols"
EMBEDDED = {"echo"}
"""Protocols that no vendor speaks: no lab plays them, no export names them."""

UNKNOWN_TO_SEEDS = {"openai-responses"}
"""Protocols that no program of the seeds speaks: an export for them says what it leaves out."""

CALL_NAMES_THE_MODEL = {"gemini"}
"""Protocols whose call has no fixed path that an endpoint could end in."""

WITHOUT_SAMPLE = {"video/x-ms-asf"}
"""Types that a signature knows and no sample shows yet; whoever makes the sample takes the line away."""

WITHOUT_EXTENSION = {
    *("application/x-mach-binary", "application/x-ole-storage"),
}
"""Types that the bytes alone tell."""

WITHOUT_NAME = {
    *("image/fits", "image/x-adobe-dng", "image/x-canon-cr2", "image/x-canon-cr3", "image/x-nikon-nef"),
    *("image/x-portable-bitmap", "image/x-portable-graymap", "image/x-portable-pixmap", "image/x-xcf"),
    "audio/x-dsf",
}
"""Media that are called by their type for want of a name people use."""


def test_a_protocol_stands_in_every_table() -> None:
    """Its folder, the registry, the limits of what it takes, the contract that keeps it apart, the documents."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    apart = next(each for each in contracts if each["name"] == "protocols know nothing of one another")
    folders = {each.name for each in FOLDER.iterdir() if (each / "__init__.py").exists()}
    assert {name.replace("-", "_") for name in PROTOCOLS} == folders
    assert set(limits.PROTOCOLS) == set(PROTOCOLS)
    assert {module.rpartition(".")[2] for module in apart["modules"]} == folders
    for document in ("README.md", "docs/configuration.md"):
        text = (ROOT / document).read_text("utf-8")
        assert [name for name in PROTOCOLS if f"`{name}`" not in text] == [], document


def test_a_call_beside_chat_stands_in_every_table() -> None:
    """Its scope, its name on pages, its line in the documents, who answers it in the lab."""
    paths = {each.path for each in OPERATIONS}
    assert {f"POST /v1{path}" for path in paths} <= set(CALL_SCOPES)
    assert set(OPERATION_NAMES) == {f"v1/{each.name}" for each in OPERATIONS}
    text = (ROOT / "docs/data-plane.md").read_text("utf-8")
    assert [path for path in paths if f"| `POST /v1{path}` |" not in text] == []
    assert set(PATHS) == paths
    assert set(PATHS.values()) == set(PLAYED)


def test_a_vendor_s_protocol_is_played_in_the_lab_and_named_in_exports() -> None:
    """All but the embedded one: a lab that speaks and hears it, common options, a word in exports, its path."""
    vendors = set(PROTOCOLS) - EMBEDDED
    assert set(VENDORS) == vendors
    assert set(BASES) == vendors
    assert set(ALL) == vendors
    assert set(SPOKEN) == vendors - UNKNOWN_TO_SEEDS
    assert set(READERS) == vendors
    assert set(CALLS) == vendors - CALL_NAMES_THE_MODEL


def test_a_host_name_belongs_to_one_preset() -> None:
    """The row that an address leads to does not hang on the order of the rows."""
    names = Counter(host for preset in PRESETS for host in preset.hosts)
    assert [host for host, count in names.items() if count > 1] == []


def test_a_type_that_bytes_prove_has_a_sample_and_an_extension() -> None:
    """What detection claims was seen on a file; the exceptions are written out, and each is still one."""
    known = {row.mime for row in SIGNATURES}
    assert known - {sample.mime for sample in SAMPLES} == WITHOUT_SAMPLE
    assert known - set(EXTENSIONS_OF_MIME) == WITHOUT_EXTENSION


def test_a_picture_sound_or_film_has_a_name_that_people_use() -> None:
    """A description says `PNG image`, never `image/png`; the exceptions are written out, and each is still one."""
    media = {*EXTENSIONS_OF_MIME, *(row.mime for row in SIGNATURES)}
    named = {mime for mime in media if mime.startswith(("image/", "audio/", "video/"))}
    assert named - set(FORMAT_OF) == WITHOUT_NAME
