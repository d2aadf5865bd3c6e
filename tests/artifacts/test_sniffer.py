"""libmagic and encoding guessers are optional, and their results are ignored if they are known to be unreliable."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from samples import SAMPLES, draw_picture

from artifacts.sniffer import DOUBTFUL, describe_sniffer, guess_encoding, sniff

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_LIBMAGIC = """
import sys
sys.modules["magic"] = sys.modules["pylibmagic"] = None
from artifacts.sniffer import describe_sniffer, detector, sniff
found = detector().detect(bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010802000000"))
print(describe_sniffer(), sniff(b"x"), found.mime_type)
"""


def test_built_in_signature_table_is_used_without_libmagic() -> None:
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT_LIBMAGIC], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert result.stdout.split() == ["none", "None", "image/png"]


def test_unreliable_libmagic_type_is_ignored() -> None:
    """For example, libmagic detects the bytes 0 to 255 as a Targa image."""
    assert sniff(bytes(range(256)) * 4) not in DOUBTFUL
    assert guess_encoding(b"") in (None, "utf_8", "ascii")


def test_threads_do_not_share_a_libmagic_handle() -> None:
    if describe_sniffer() == "none":
        return
    alone = [sniff(sample.data) for sample in SAMPLES]
    answers: dict[int, list[str | None]] = {}

    def ask(number: int) -> None:
        answers[number] = [sniff(sample.data) for sample in SAMPLES]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(answers.values()) == [alone] * 4
    assert sniff(draw_picture("PNG")) == "image/png"
