"""Malicious and malformed multipart uploads: file names, content types and parts."""

from __future__ import annotations

from collections.abc import Iterator

BOUNDARY = "an-edge-of-the-form"

# File names that a form may contain.
HOSTILE_NAMES = (
    *(
        "../../etc/passwd",
        "/etc/passwd",
        "..\\..\\a.dll",
        "C:\\a.txt",
        "\\\\host\\share\\a.txt",
        "....//....//a",
        "~/.ssh/id",
    ),
    *(".", "..", "...", "", " ", "a.", "a ", ".txt", "-rf", "--", "con.txt", "nul", "a:b", "a::$DATA", "a|b", "*?<>"),
    *("a\0b.txt", "a%00.txt", "%2e%2e%2fa", 'a\\"; filename=\\"b.exe', "a;b=c", "a\tb", "a\x7fb\x1b[2J", "\ufeffa.txt"),
    *("a" * 300, "名" * 400, "a." + "b" * 300, "\u202egnp.exe", "e\u0301" * 90, "\U0001f4a9.txt", "\u2028a\u2029"),
    *("<script>alert(1)</script>.txt", "{{7*7}}.txt", "%s%n%x.txt", "${HOME}.txt", "`id`.txt", "'; DROP TABLE a;--"),
    *("[无法读取] a (artifact:b)", "artifact:" + "0" * 32, "a\u00a0b", "\ud7ff\ue000.txt", "NaN", "null", "a]]>b"),
)

# Content types that a form part may declare.
ODD_TYPES = (
    *("", ";", "/", "a", "a/", "/a", "*/*", "text", "text/", "text/plain;", "TEXT/PLAIN", "text/plain; charset"),
    *(
        "text/plain; charset=utf-7",
        "text/plain; charset=idna",
        "text/plain; charset=undefined",
        "text/plain; charset=rot13",
    ),
    *("text/plain; charset=" + "x" * 9000, "text/plain; charset=\0", 'text/plain; charset="', "text/plain; a=b; a=c"),
    *("image/png, text/html", "image/" + "x" * 9000, "image/svg+xml; x=<script>", "multipart/form-data; boundary=x"),
    *(
        "message/rfc822",
        "application/x-www-form-urlencoded",
        "image/p\u00f6ng",
        "application/octet-stream; type=image/png",
    ),
)


def multipart_form(
    name: str = "a.txt", kind: str = "text/plain", data: bytes = b"some words\n", field: str = "file"
) -> bytes:
    """Return a multipart form with one part, without escaping anything."""
    disposition = f'Content-Disposition: form-data; name="{field}"; filename="{name}"'
    head = f"--{BOUNDARY}\r\n{disposition}\r\nContent-Type: {kind}\r\n\r\n"
    return head.encode("utf-8", "surrogatepass") + data + f"\r\n--{BOUNDARY}--\r\n".encode()


def faulty_forms() -> Iterator[tuple[str, bytes]]:
    """Yield pairs of a label and a form that violates the multipart format."""
    edge, valid = BOUNDARY.encode(), multipart_form()
    head = b'Content-Disposition: form-data; name="file"; filename="a"'
    yield "nothing", b""
    yield "no end", valid[:-30]
    yield "no edge", valid.replace(edge, b"another")
    yield "an end alone", b"--" + edge + b"--\r\n"
    yield "lines of one character", valid.replace(b"\r\n", b"\n")
    yield "no head", b"--" + edge + b"\r\n\r\nx\r\n--" + edge + b"--\r\n"
    yield "no name", valid.replace(b'name="file"; ', b"")
    yield "no filename", valid.replace(b'; filename="a.txt"', b"")
    yield "another field", multipart_form(field="upload")
    yield "two files", valid[: -len(BOUNDARY) - 6] + valid
    yield "five hundred files", valid[: -len(BOUNDARY) - 6] * 500 + valid
    yield (
        "two thousand fields",
        (b"--" + edge + b'\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n') * 2000 + valid,
    )
    yield "a field of four megabytes", multipart_form(field="type").replace(b"; filename", b"; x") + b"y" * (4 << 20)
    yield "a head of a megabyte", valid.replace(b"text/plain", b"text/plain; a=" + b"b" * (1 << 20))
    yield "ten thousand heads", valid.replace(b"Content-Type", b"X: y\r\n" * 10_000 + b"Content-Type")
    yield "a head without a colon", valid.replace(b"Content-Type: ", b"Content-Type ")
    yield "a head that is folded", valid.replace(b"; filename", b";\r\n\tfilename")
    yield "two names", valid.replace(b'name="file"', b'name="file"; name="type"')
    yield "two filenames", valid.replace(b'filename="a.txt"', b'filename="a.txt"; filename="b.exe"')
    yield "a filename in another way", valid.replace(b'filename="a.txt"', b"filename*=utf-8''%2e%2e%2fa.txt")
    yield "a filename in no encoding", valid.replace(b'filename="a.txt"', b"filename*=none''%ff%fe")
    yield "bytes for a name", valid.replace(b"a.txt", b"\xff\xfe\x00\x80")
    yield "base64 that is none", valid.replace(b"Content-Type", b"Content-Transfer-Encoding: base64\r\nContent-Type")
    yield (
        "quoted that is none",
        valid.replace(b"Content-Type", b"Content-Transfer-Encoding: quoted-printable\r\nContent-Type"),
    )
    yield (
        "a form in a form",
        valid.replace(b"text/plain", b"multipart/mixed; boundary=x").replace(b"some words", b"--x\r\n\r\n"),
    )
    yield "the edge in the data", multipart_form(data=b"--" + edge[:-1] + b"\r\n--" + edge + b"x" * 99)
    yield "dashes without end", b"-" * 300_000
    yield "edges without end", (b"--" + edge + b"\r\n") * 20_000
    yield "heads without end", b"--" + edge + b"\r\n" + (head + b"\r\n") * 5000
    yield (
        "metadata that nests",
        valid[: -len(BOUNDARY) - 6]
        + multipart_form(field="metadata", data=b"[" * 90_000).replace(b"; filename", b"; x"),
    )
    yield (
        "metadata of a number",
        valid[: -len(BOUNDARY) - 6] + multipart_form(field="metadata", data=b"7").replace(b"; filename", b"; x"),
    )
