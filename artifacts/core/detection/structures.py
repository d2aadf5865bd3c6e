"""Predicates that check the structure after a file's signature, one for each format.

A signature alone can occur by accident. The predicates never raise an exception: a field after the end of the data
counts as zero, which is invalid.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import reduce
from operator import xor

Structure = Callable[[bytes], bool]


def be(data: bytes, offset: int, size: int) -> int:
    """Return the big-endian number at the offset, or 0 if it is outside the data."""
    return int.from_bytes(data[offset : offset + size], "big") if len(data) >= offset + size else 0


def le(data: bytes, offset: int, size: int) -> int:
    """Return the little-endian number at the offset, or 0 if it is outside the data."""
    return int.from_bytes(data[offset : offset + size], "little") if len(data) >= offset + size else 0


def png(data: bytes) -> bool:
    # In a valid PNG, IHDR is first and has 13 bytes, width and height are positive, and the bit depth is allowed.
    return (
        data[8:16] == b"\0\0\0\rIHDR"
        and be(data, 16, 4) > 0
        and be(data, 20, 4) > 0
        and be(data, 24, 1) in (1, 2, 4, 8, 16)
    )


def jpeg(data: bytes) -> bool:
    # In a valid JPEG, the start marker is followed by a segment with a length, and that segment by another marker.
    marker, length = be(data, 3, 1), be(data, 4, 2)
    if not 0xC0 <= marker <= 0xFE or length < 2:
        return False
    next_marker = data[4 + length : 6 + length]
    return len(next_marker) == 2 and next_marker[0] == 0xFF and next_marker[1] >= 0xC0


def gif(data: bytes) -> bool:
    # In a valid GIF, the logical screen and its color table are followed by an extension, an image or the end marker.
    flags = be(data, 10, 1)
    start = 13 + (3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0)
    return le(data, 6, 2) > 0 and le(data, 8, 2) > 0 and data[start : start + 1] in (b"\x21", b"\x2c", b"\x3b")


def riff_chunk(*names: bytes) -> Structure:
    return lambda data: data[12:16] in names


def bmp(data: bytes) -> bool:
    # A valid BMP has a DIB header of a known size, one plane, and pixels after the header.
    header = le(data, 14, 4)
    planes = le(data, 22, 2) if header == 12 else le(data, 26, 2)
    return header in (12, 16, 40, 52, 56, 64, 108, 124) and planes == 1 and le(data, 10, 4) >= 14 + header


def icon(data: bytes) -> bool:
    # A valid icon file has at least one entry with a reserved byte of 0 and an image after the directory.
    count = le(data, 4, 2)
    return 1 <= count <= 256 and data[9:10] == b"\0" and le(data, 14, 4) > 0 and le(data, 18, 4) >= 6 + 16 * count


def tiff(data: bytes) -> bool:
    # In a valid TIFF, the first directory follows the header.
    read = le if data[:2] == b"II" else be
    return read(data, 4, 4) >= 8


def sun_raster(data: bytes) -> bool:
    # A valid Sun raster has a known depth, type and color map type (rasterfile.h of SunOS).
    return be(data, 12, 4) in (1, 8, 24, 32) and be(data, 20, 4) in range(6) and be(data, 24, 4) in range(3)


_GAP = rb"(?:\s|#[^\n]{0,200}\n)"
_NUMBER = rb"([1-9][0-9]{0,6})"
_NETPBM = re.compile(rb"P([1-6])([ \t\r]*(?:\n|(?=#)))?" + _GAP + rb"*" + _NUMBER + _GAP + rb"+" + _NUMBER)
_MAXIMUM = re.compile(_GAP + rb"+" + _NUMBER)
_CONTROL = re.compile(rb"[\0-\x08\x0e-\x1a]")
MIN_PIXELS = 1000
"""A cut-off image whose bytes could also be text is recognised only if it has at least this many pixel values."""


def netpbm(data: bytes) -> bool:
    # In a valid netpbm image, the magic letters are followed by decimal numbers: width, height and, except in bitmaps,
    # a maximum value (netpbm's pbm(5), pgm(5), ppm(5)).
    header = data[:1024]
    size = _NETPBM.match(header)
    if size is None:
        return False
    kind, is_bitmap, has_own_line = int(size[1]), size[1] in b"14", size[2] is not None
    maximum = None if is_bitmap else _MAXIMUM.match(header, size.end())
    if maximum is None and not is_bitmap:
        return False
    pixels, highest = data[(maximum or size).end() :], int(maximum[1]) if maximum else 1
    if not pixels[:1].isspace():
        return False
    if kind > 3 and _CONTROL.search(pixels, 1, 4096):
        return True
    # A text file can begin with lines of numbers like an image, so check the pixels, too.
    needed = int(size[3]) * int(size[4]) * (3 if kind in (3, 6) else 1)
    if not has_own_line or kind == 4:
        return False
    if kind > 3:
        depth = 1 if highest < 256 else 2
        found = len(pixels) - 1
        is_full = found == needed * depth or MIN_PIXELS <= found < needed * depth
        return is_full and (depth == 2 or max(pixels[1:]) <= highest)
    return _are_decimals(re.sub(rb"#[^\n]*", b"", pixels), needed, highest, spaced=kind > 1)


def _are_decimals(pixels: bytes, needed: int, highest: int, *, spaced: bool) -> bool:
    digits, enough = pixels.translate(None, b" \t\r\n"), min(needed, MIN_PIXELS)
    if not spaced:
        return len(digits) >= enough and not digits.translate(None, b"01")
    values = pixels.split()
    if len(values) < enough or digits.translate(None, b"0123456789"):
        return False
    return max(map(len, values)) <= 5 and max(map(int, values)) <= highest


def portable_arbitrary_map(data: bytes) -> bool:
    # In a valid PAM image, four fields precede the end of the header, in any order and each on its own line (netpbm's
    # pam(5)).
    header, end, _ = data[:4096].partition(b"\nENDHDR\n")
    facts = re.findall(rb"^(WIDTH|HEIGHT|DEPTH|MAXVAL)[ \t]+[1-9][0-9]{0,9}[ \t]*$", header, re.MULTILINE)
    return bool(end) and sorted(facts) == [b"DEPTH", b"HEIGHT", b"MAXVAL", b"WIDTH"]


def pcx(data: bytes) -> bool:
    # A valid PCX has a known version, encoding, bit depth, number of planes and window, and a reserved byte of 0
    # (ZSoft's PCX 5).
    return (
        len(data) >= 128
        and data[1] in (0, 2, 3, 4, 5)
        and data[2] == 1
        and data[3] in (1, 2, 4, 8)
        and data[64] == 0
        and 1 <= data[65] <= 4
        and le(data, 8, 2) >= le(data, 4, 2)
        and le(data, 10, 2) >= le(data, 6, 2)
        and le(data, 66, 2) * 8 >= (le(data, 8, 2) - le(data, 4, 2) + 1) * data[3]
    )


def psd(data: bytes) -> bool:
    # A valid PSD has version 1 or 2, and 1 to 56 channels.
    return be(data, 4, 2) in (1, 2) and 1 <= be(data, 12, 2) <= 56


def id3(data: bytes) -> bool:
    # A valid ID3 tag has a known version, and a size of four 7-bit bytes.
    return 2 <= be(data, 3, 1) <= 4 and len(data) >= 10 and all(byte < 0x80 for byte in data[6:10])


MPEG_KBPS = {
    (3, 1): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (3, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (3, 3): (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (2, 1): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (2, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (2, 3): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
}
"""Bit rates in kbit/s for indexes 1 to 14, by MPEG version and layer bits (ISO 11172-3, 13818-3). Version 2.5 has the
bit rates of version 2."""


def mp3_frame(data: bytes, offset: int = 0) -> int:
    """Return the length in bytes of the MPEG audio frame at the offset, or 0 if there is none."""
    head = be(data, offset, 4)
    if head >> 21 != 0x7FF:
        return 0
    version, layer, rate, hertz = head >> 19 & 3, head >> 17 & 3, head >> 12 & 15, head >> 10 & 3
    if version == 1 or layer == 0 or rate in (0, 15) or hertz == 3 or head & 3 == 2:
        return 0
    kbps = MPEG_KBPS[3 if version == 3 else 2, layer][rate - 1]
    sample_rate = (44100, 48000, 32000)[hertz] >> {3: 0, 2: 1, 0: 2}[version]
    padding = head >> 9 & 1
    if layer == 3:
        return (12000 * kbps // sample_rate + padding) * 4
    return (72000 if layer == 1 and version != 3 else 144000) * kbps // sample_rate + padding


def mp3_frames(data: bytes) -> bool:
    # A valid MP3 has a second header after the first frame, with the same version, layer and sample rate.
    length = mp3_frame(data)
    is_same_format = (
        be(data, 0, 2) & 0xFFFE == be(data, length, 2) & 0xFFFE and be(data, 2, 1) & 12 == be(data, length + 2, 1) & 12
    )
    return length > 0 and is_same_format and mp3_frame(data, length) > 0


def aac_frames(data: bytes) -> bool:
    # A valid AAC file has a second ADTS header (sync word, layer 0) after the first frame.
    length = be(data, 3, 3) >> 5 & 0x1FFF
    return be(data, 0, 2) & 0xFFF6 == 0xFFF0 and length >= 7 and be(data, length, 2) & 0xFFF6 == 0xFFF0


def transport_stream(data: bytes) -> bool:
    # In a valid transport stream, each of the first four packets of 188 bytes begins with the sync byte and has no
    # transport error bit.
    return len(data) >= 4 * 188 and all(data[188 * n] == 0x47 and not data[188 * n + 1] & 0x80 for n in range(4))


def program_stream(data: bytes) -> bool:
    # In a valid program stream, the marker bits of an MPEG-1 or MPEG-2 pack header follow the start code.
    return len(data) >= 12 and (data[4] >> 4 == 2 or data[4] >> 6 == 1)


def blu_ray_stream(data: bytes) -> bool:
    # A valid M2TS file is a transport stream with a time code of four bytes before each packet (Blu-ray).
    return len(data) >= 4 * 192 and all(data[192 * n + 4] == 0x47 for n in range(4))


def tar(data: bytes) -> bool:
    # In a valid tar file, the header's octal checksum is the sum of its bytes, with the checksum field counted as
    # spaces.
    field = data[148:156].strip(b"\0 ")
    if len(data) < 512 or not field or any(byte not in b"01234567" for byte in field):
        return False
    return int(field, 8) == sum(data[:148]) + 8 * 32 + sum(data[156:512])


def zip_entry(data: bytes) -> bool:
    # A valid zip file begins with a local header whose version, method and name length are plausible.
    return le(data, 4, 2) <= 63 and le(data, 8, 2) <= 99 and 0 < le(data, 26, 2) <= 4096


def ar_member(data: bytes) -> bool:
    # In a valid `ar` archive, either nothing or a member header follows the signature. A member header ends with a
    # backquote and a newline.
    return len(data) == 8 or data[66:68] == b"`\n"


def cbor_item(data: bytes) -> bool:
    # In valid CBOR, an item with a valid length encoding follows the self-described tag (RFC 8949 §3).
    return len(data) > 3 and data[3] & 0x1F not in (28, 29, 30)


def ole2(data: bytes) -> bool:
    # A valid OLE2 file has the little-endian marker, and sectors of 512 or 4096 bytes.
    return data[28:30] == b"\xfe\xff" and le(data, 30, 2) in (9, 12)


def portable_executable(data: bytes) -> bool:
    # In a valid Windows program, the DOS header points to the PE signature.
    start = le(data, 60, 4)
    return 64 <= start <= len(data) - 4 and data[start : start + 4] == b"PE\0\0"


def java_class(data: bytes) -> bool:
    # A valid Java class file has a version from Java 1.0 to 40. A universal Mach-O file starts with the same bytes, but
    # has a small number instead of the version.
    return 45 <= be(data, 6, 2) <= 84 and be(data, 8, 2) > 0


def font_tables(data: bytes) -> bool:
    # A valid font has 1 to 64 tables, and the search range that follows from this number.
    tables = be(data, 4, 2)
    return 0 < tables <= 64 and be(data, 6, 2) == 16 * 2 ** (tables.bit_length() - 1)


def asf(data: bytes) -> bool:
    # A valid ASF file has a header object of plausible size with the expected reserved bytes.
    return le(data, 16, 8) >= 30 and data[28:30] == b"\x01\x02"


def wav_float_or_pcm(data: bytes) -> bool:
    # In a valid RIFF file, the brand is followed by a chunk name of printable characters.
    return len(data) >= 16 and all(32 <= byte < 127 for byte in data[12:16])


def ftyp(data: bytes) -> bool:
    # A valid `ftyp` box has room for a brand and a version, and its brand is printable.
    return 16 <= be(data, 0, 4) <= 4096 and len(data) >= 12 and all(32 <= byte < 127 for byte in data[8:12])


def quicktime_atom(data: bytes) -> bool:
    # Old QuickTime files have no brand, so the first atom must be followed by another known one.
    start = be(data, 0, 4)
    return start >= 8 and data[start + 4 : start + 8] in (b"moov", b"mdat", b"free", b"skip", b"wide", b"trak", b"mvhd")


def always(_: bytes) -> bool:
    """Return True, for signatures whose fixed bytes are long or unusual enough to count as proof."""
    return True


def number(offset: int, size: int, low: int, high: int, *, little: bool = False) -> Structure:
    """Return a predicate that checks whether a number is within inclusive bounds and entirely inside the data."""
    read = le if little else be
    return lambda data: len(data) >= offset + size and low <= read(data, offset, size) <= high


def at(offset: int, *options: bytes) -> Structure:
    return lambda data: any(data[offset : offset + len(option)] == option for option in options)


def ogg(data: bytes) -> bool:
    # A valid Ogg file has version 0 and begins with the first page of a stream, which contains a packet.
    return data[4:5] == b"\0" and be(data, 5, 1) & 2 == 2 and be(data, 26, 1) > 0


def paint(data: bytes) -> bool:
    # In a valid Microsoft Paint image (Windows 1 and 2), the width and height are positive, and the XOR of the header's
    # sixteen words is 0.
    return (
        len(data) >= 32 and le(data, 4, 2) > 0 < le(data, 6, 2) and reduce(xor, struct.unpack("<16H", data[:32])) == 0
    )


def image_memory(data: bytes) -> bool:
    # A valid IFUNC Image Memory file, as written by Pillow, has a header of text lines with names and values, including
    # the size, in its first 512 bytes.
    lines = re.split(rb"[\0\x1a]", data[:512], maxsplit=1)[0]
    return len(data) >= 512 and len(lines) < 512 and b"\nImage size (x*y): " in lines


def wmf(data: bytes) -> bool:
    # In a valid placeable metafile, the header's checksum is the XOR of its ten words.
    if len(data) < 22:
        return False
    words = struct.unpack("<11H", data[:22])
    return bool(reduce(xor, words[:10]) == int(words[10]))


IMPLAUSIBLE_BYTES = 1 << 40
"""A size in bytes that exceeds the size of any real file."""


def arj(data: bytes) -> bool:
    # A valid ARJ archive has a main header of known size and entry type (ARJ's technical notes).
    return 0 < le(data, 2, 2) <= 2600 and 0x1E <= be(data, 4, 1) <= 0x30 and data[10:11] == b"\x02"


def lha(data: bytes) -> bool:
    # A valid LHA archive has a known compression method, such as `-lh5-`, and a header level (LHA's header.doc).
    return re.match(rb".{2}-l[hz][0-9ds]-.{13}[\0-\3]", data[:22], re.DOTALL) is not None


def lzma_alone(data: bytes) -> bool:
    # A valid LZMA file has a dictionary of 4 KiB to 1.5 GiB, and an unpacked size that is unknown or plausible (LZMA
    # SDK, lzma.txt).
    size = le(data, 5, 8)
    return (
        12 <= le(data, 1, 4).bit_length() - 1 <= 30
        and not le(data, 1, 2)
        and (size == 2**64 - 1 or size < IMPLAUSIBLE_BYTES)
    )


def cpio(data: bytes) -> bool:
    # A valid cpio header in the `newc` format consists of hexadecimal digits (cpio(5)).
    return re.match(rb"07070[12][0-9A-Fa-f]{104}", data[:110]) is not None


def dbase(data: bytes) -> bool:
    # A valid dBASE III file has a valid month and day, and a field list that ends at the end of the header.
    length = le(data, 8, 2)
    return 1 <= be(data, 2, 1) <= 12 and 1 <= be(data, 3, 1) <= 31 and length > 64 and data[length - 1 :][:1] == b"\r"


def shape(data: bytes) -> bool:
    # In a valid shapefile, the reserved zeros are followed by version 1000 and a shape type (ESRI's white paper of
    # 1998).
    return le(data, 28, 4) == 1000 and le(data, 32, 4) <= 31 and not any(data[4:24])


def tensors(data: bytes) -> bool:
    # A valid safetensors file has a JSON header that ends after its stated length, unless the data is cut off before
    # (safetensors' README).
    length = le(data, 0, 8)
    return 2 <= length <= 100_000_000 and (len(data) < 8 + length or data[7 + length : 8 + length] in (b"}", b" "))


def pickle(data: bytes) -> bool:
    # A valid pickle has protocol 4 or 5, and a frame of plausible length (PEP 3154).
    return data[1:2] in (b"\4", b"\5") and data[2:3] == b"\x95" and le(data, 3, 8) < IMPLAUSIBLE_BYTES


def avro(data: bytes) -> bool:
    # In a valid Avro file, the metadata after the signature contains the schema (Avro 1.11, object container files).
    return b"avro.schema" in data[:4096]


def certificate(data: bytes) -> bool:
    # A valid certificate starts with two nested sequences, whose first member is version 3 (X.509, RFC 5280 §4.1).
    return data[4:6] == b"\x30\x82" and data[8:13] == b"\xa0\3\2\1\2" and be(data, 2, 2) > be(data, 6, 2)


def torrent(data: bytes) -> bool:
    # A valid torrent is a dictionary that describes its files and whose first key is one of the known keys (BEP 3).
    return re.match(rb"d(8:announce|7:comment|10:created by|4:info)", data[:16]) is not None and b"4:infod" in data


def drawing(data: bytes) -> bool:
    # A valid AutoCAD drawing has the version number of release 13 or later (Open Design Specification for .dwg files).
    return re.match(rb"AC10(12|14|15|18|21|24|27|32)\0", data[:7]) is not None
