"""Structures behind the first bytes of rarer archives and data; see `structures`. None raises."""

from __future__ import annotations

import re

from artifacts.core.detection.structures import be, le

HUGE = 1 << 40
"""Bytes that no part of a file has here."""


def arj(data: bytes) -> bool:
    """The main header, of a size and with an entry's kind that exist (ARJ's technical notes)."""
    return 0 < le(data, 2, 2) <= 2600 and 0x1E <= be(data, 4, 1) <= 0x30 and data[10:11] == b"\x02"


def lha(data: bytes) -> bool:
    """A method that exists, as `-lh5-`, and a header's level (LHA's header.doc)."""
    return re.match(rb".{2}-l[hz][0-9ds]-.{13}[\0-\3]", data[:22], re.DOTALL) is not None


def lzma_alone(data: bytes) -> bool:
    """A dictionary of 4 KiB to 1.5 GiB and a size that is unknown or a number (LZMA SDK, lzma.txt)."""
    size = le(data, 5, 8)
    return 12 <= le(data, 1, 4).bit_length() - 1 <= 30 and not le(data, 1, 2) and (size == 2**64 - 1 or size < HUGE)


def cpio(data: bytes) -> bool:
    """A header of hexadecimal digits throughout (cpio(5), newc)."""
    return re.match(rb"07070[12][0-9A-Fa-f]{104}", data[:110]) is not None


def dbase(data: bytes) -> bool:
    """A day that exists, and a list of fields that ends where the header does (dBASE III)."""
    length = le(data, 8, 2)
    return 1 <= be(data, 2, 1) <= 12 and 1 <= be(data, 3, 1) <= 31 and length > 64 and data[length - 1 :][:1] == b"\r"


def shape(data: bytes) -> bool:
    """Version 1000 and a kind of shape behind the reserved zeros (ESRI's white paper of 1998)."""
    return le(data, 28, 4) == 1000 and le(data, 32, 4) <= 31 and not any(data[4:24])


def tensors(data: bytes) -> bool:
    """A header of JSON that ends as long as it says, as far as the head goes (safetensors' README)."""
    length = le(data, 0, 8)
    return 2 <= length <= 100_000_000 and (len(data) < 8 + length or data[7 + length : 8 + length] in (b"}", b" "))


def pickle(data: bytes) -> bool:
    """A protocol of 4 or 5 and a frame of a length that a file can have (PEP 3154)."""
    return data[1:2] in (b"\4", b"\5") and data[2:3] == b"\x95" and le(data, 3, 8) < HUGE


def avro(data: bytes) -> bool:
    """The schema in the metadata behind the mark (Avro 1.11, object container files)."""
    return b"avro.schema" in data[:4096]


def certificate(data: bytes) -> bool:
    """A sequence in a sequence whose first member is version 3 (X.509, RFC 5280 §4.1)."""
    return data[4:6] == b"\x30\x82" and data[8:13] == b"\xa0\3\2\1\2" and be(data, 2, 2) > be(data, 6, 2)


def torrent(data: bytes) -> bool:
    """A dictionary whose first name belongs to a torrent, and the description of its files (BEP 3)."""
    return re.match(rb"d(8:announce|7:comment|10:created by|4:info)", data[:16]) is not None and b"4:infod" in data


def drawing(data: bytes) -> bool:
    """A release of AutoCAD from 13 on (Open Design's specification of .dwg)."""
    return re.match(rb"AC10(12|14|15|18|21|24|27|32)\0", data[:7]) is not None
