"""Make a WAV file with spoken digits, joined from recordings of the ten digits (see NOTICE)."""

from __future__ import annotations

import io
import wave
from functools import cache
from importlib.resources import files

RATE = 16_000
DIGIT_FRAMES = RATE * 3 // 4
"""The frames of each digit in the recording, including the silence after it."""
SILENCE = 128
"""The middle of an 8-bit sample."""


def wav(digits: str) -> bytes:
    """Return the digits in spoken English, with short pauses. Without digits, return silence as long as four digits."""
    pause = bytes((SILENCE,)) * (RATE // 4)
    speech = pause + pause.join(_clip_of(digit) for digit in digits) + pause
    samples = speech if digits else pause + (bytes((SILENCE,)) * DIGIT_FRAMES + pause) * 4
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        # From unsigned 8-bit samples to signed 16-bit samples.
        file.writeframes(b"".join(((sample - SILENCE) * 256).to_bytes(2, "little", signed=True) for sample in samples))
    return out.getvalue()


def _clip_of(digit: str) -> bytes:
    start = int(digit) * DIGIT_FRAMES
    return _recording()[start : start + DIGIT_FRAMES]


@cache
def _recording() -> bytes:
    with files(__package__).joinpath("digits.wav").open("rb") as file, wave.open(file) as clips:
        return bytes(clips.readframes(clips.getnframes()))
