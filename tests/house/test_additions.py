"""Additions are complete: CONTRIBUTING.md lists the steps, and these tests fail if a step was forgotten.

A protocol, a host or a file type has to be in several tables, which are compared with one another. Additional pages are
checked by `tests/ui/test_every_page.py`, `tests/console/test_counted_pages.py` and `tests/permissions`, and additional
faults by `test_fault_outcomes.py` and `test_fault_matrix.py` in `tests/fallback`.
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
from capabilities.core.texts.friendly import FORMAT_NAMES
from routing_admin.core.files.endpoints import CALLS
from routing_admin.core.files.seed_export import SEED_PROTOCOLS
from routing_admin.request_log.operations import OPERATION_NAMES
from tests.artifacts.samples import SAMPLES
from tests.lab.operations import OPERATIONS as PLAYED
from tests.lab.operations import PATHS
from tests.lab.received_requests import READERS
from tests.lab.server import BASES
from tests.lab.shapes import VENDORS

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "capabilities" / "core" / "protocols"
EMBEDDED = {"echo"}
"""Protocols that belong to no vendor. Neither the fault lab nor exports support them."""

UNKNOWN_TO_SEEDS = {"openai-responses"}
"""Protocols that are unknown to the programs whose seed files we export. The export lists what it omits."""

CALL_NAMES_THE_MODEL = {"gemini"}
"""Protocols whose call URLs contain the model's name and thus have no fixed path."""

WITHOUT_SAMPLE = {"video/x-ms-asf"}
"""File types with a signature that have no sample yet. Remove a type from this set when you add its sample."""

WITHOUT_EXTENSION = {
    *("application/x-mach-binary", "application/x-ole-storage"),
}
"""File types that can be identified only by their bytes."""

WITHOUT_NAME = {
    *("image/fits", "image/x-adobe-dng", "image/x-canon-cr2", "image/x-canon-cr3", "image/x-nikon-nef"),
    "image/x-xcf",
    "audio/x-dsf",
}
"""Media types without a common name. They are shown as their MIME type."""


def test_every_protocol_is_in_every_protocol_table() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    separation = next(contract for contract in contracts if contract["name"] == "protocols know nothing of one another")
    folders = {path.name for path in FOLDER.iterdir() if (path / "__init__.py").exists()}
    assert {name.replace("-", "_") for name in PROTOCOLS} == folders
    assert set(limits.PROTOCOLS) == set(PROTOCOLS)
    assert {module.rpartition(".")[2] for module in separation["modules"]} == folders
    for document in ("README.md", "docs/configuration.md"):
        text = (ROOT / document).read_text("utf-8")
        assert [name for name in PROTOCOLS if f"`{name}`" not in text] == [], document


def test_every_passthrough_operation_is_in_every_table() -> None:
    paths = {operation.path for operation in OPERATIONS}
    assert {f"POST /v1{path}" for path in paths} <= set(CALL_SCOPES)
    assert set(OPERATION_NAMES) == {f"v1/{operation.name}" for operation in OPERATIONS}
    text = (ROOT / "docs/data-plane.md").read_text("utf-8")
    assert [path for path in paths if f"| `POST /v1{path}` |" not in text] == []
    assert set(PATHS) == paths
    assert set(PATHS.values()) == set(PLAYED)


def test_every_vendor_protocol_is_simulated_by_the_lab_and_listed_for_exports() -> None:
    vendors = set(PROTOCOLS) - EMBEDDED
    assert set(VENDORS) == vendors
    assert set(BASES) == vendors
    assert set(ALL) == vendors
    assert set(SEED_PROTOCOLS) == vendors - UNKNOWN_TO_SEEDS
    assert set(READERS) == vendors
    assert set(CALLS) == vendors - CALL_NAMES_THE_MODEL


def test_every_host_name_belongs_to_only_one_preset() -> None:
    """Otherwise, the preset found for a URL would depend on the order of the table's rows."""
    names = Counter(host for preset in PRESETS for host in preset.hosts)
    assert [host for host, count in names.items() if count > 1] == []


def test_file_type_with_a_signature_has_a_sample_and_an_extension() -> None:
    types = {row.mime for row in SIGNATURES}
    assert types - {sample.mime for sample in SAMPLES} == WITHOUT_SAMPLE
    assert types - set(EXTENSIONS_OF_MIME) == WITHOUT_EXTENSION


def test_every_media_type_has_a_common_name() -> None:
    """Descriptions say `PNG image` instead of `image/png`."""
    media = {*EXTENSIONS_OF_MIME, *(row.mime for row in SIGNATURES)}
    named = {mime for mime in media if mime.startswith(("image/", "audio/", "video/"))}
    assert named - set(FORMAT_NAMES) == WITHOUT_NAME
