"""One row of the tables of signatures: which bytes stand where, and the structure that proves them."""

from __future__ import annotations

from dataclasses import dataclass

from artifacts.core.detection.structures import Structure


@dataclass(frozen=True, slots=True)
class Signature:
    """One row: these bytes at that offset; `structure` None means that they only hint."""

    mime: str
    fixed: bytes
    structure: Structure | None
    offset: int = 0
    family: str = ""
    also: tuple[str, ...] = ()
    textual: bool = False
