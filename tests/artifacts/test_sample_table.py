"""What each of the sample files is and how three services get it, written down: read the table, then the law.

The services speak the `openai` protocol without a policy, as the demo's do. What get_artifact answers for the same
files stands in test_sample_deliveries.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import SAMPLES, Sample
from test_sample_deliveries import SERVICES, keep

from artifacts.core.detection.extensions import ODF, OOXML
from artifacts.storage.files import FileStore
from capabilities.core.delivery.adaptation import CannotRead, text_style_for
from capabilities.core.delivery.receiver import prepare, receiver
from capabilities.core.message import ChatRequest, Message, Role
from capabilities.core.wire import Target

TABLE = """
file            | kind     | text-model | vision-model | multimodal-model | type
photo.png       | image    | described  | native       | native           | image/png
photo.jpg       | image    | described  | native       | native           | image/jpeg
photo.gif       | image    | described  | native       | native           | image/gif
photo.webp      | image    | described  | native       | native           | image/webp
lossless.webp   | image    | described  | native       | native           | image/webp
photo.bmp       | image    | described  | described    | described        | image/bmp
photo.tiff      | image    | described  | described    | described        | image/tiff
photo.avif      | image    | described  | described    | described        | image/avif
icon.ico        | image    | described  | described    | described        | image/x-icon
photo.jp2       | image    | described  | described    | described        | image/jp2
photo.heic      | image    | described  | described    | described        | image/heic
photo.heif      | image    | described  | described    | described        | image/heic
layers.psd      | image    | described  | described    | described        | image/vnd.adobe.photoshop
photo.jxl       | image    | described  | described    | described        | image/jxl
pixel.qoi       | image    | described  | described    | described        | image/qoi
scan.djvu       | document | described  | described    | described        | image/vnd.djvu
voice.wav       | audio    | described  | described    | native           | audio/wav
song.mp3        | audio    | described  | described    | native           | audio/mpeg
tagged.mp3      | audio    | described  | described    | native           | audio/mpeg
song.flac       | audio    | described  | described    | described        | audio/flac
song.ogg        | audio    | described  | described    | described        | audio/ogg
voice.opus      | audio    | described  | described    | described        | audio/ogg
song.m4a        | audio    | described  | described    | described        | audio/mp4
sound only.mp4  | audio    | described  | described    | described        | audio/mp4
song.aac        | audio    | described  | described    | described        | audio/aac
song.aiff       | audio    | described  | described    | described        | audio/aiff
voice.amr       | audio    | described  | described    | described        | audio/amr
tune.mid        | audio    | described  | described    | described        | audio/midi
song.wma        | audio    | described  | described    | described        | audio/x-ms-wma
sound.au        | audio    | described  | described    | described        | audio/basic
sound only.webm | audio    | described  | described    | described        | audio/webm
clip.mp4        | video    | described  | described    | described        | video/mp4
clip.mov        | video    | described  | described    | described        | video/quicktime
clip.3gp        | video    | described  | described    | described        | video/3gpp
clip.webm       | video    | described  | described    | described        | video/webm
clip.mkv        | video    | described  | described    | described        | video/x-matroska
clip.avi        | video    | described  | described    | described        | video/x-msvideo
clip.flv        | video    | described  | described    | described        | video/x-flv
clip.wmv        | video    | described  | described    | described        | video/x-ms-wmv
clip.mpg        | video    | described  | described    | described        | video/mpeg
stream.ts       | video    | described  | described    | described        | video/mp2t
clip.ogv        | video    | described  | described    | described        | video/ogg
report.pdf      | document | described  | described    | native           | application/pdf
letter.docx     | document | described  | described    | described        | ooxml:wordprocessingml.document
sums.xlsx       | document | described  | described    | described        | ooxml:spreadsheetml.sheet
talk.pptx       | document | described  | described    | described        | ooxml:presentationml.presentation
letter.odt      | document | described  | described    | described        | odf:text
sums.ods        | document | described  | described    | described        | odf:spreadsheet
talk.odp        | document | described  | described    | described        | odf:presentation
book.epub       | document | described  | described    | described        | application/epub+zip
old.doc         | document | described  | described    | described        | application/msword
old.xls         | document | described  | described    | described        | application/vnd.ms-excel
day.xls         | document | described  | described    | described        | application/vnd.ms-excel
sums.xlsb       | document | described  | described    | described        | vnd:ms-excel.sheet.binary.macroenabled.12
old.ppt         | document | described  | described    | described        | application/vnd.ms-powerpoint
mail.msg        | document | described  | described    | described        | application/vnd.ms-outlook
letter.doc      | document | described  | described    | described        | application/msword
talk.ppt        | document | described  | described    | described        | application/vnd.ms-powerpoint
plan.msg        | document | described  | described    | described        | application/vnd.ms-outlook
letter.rtf      | document | described  | described    | described        | application/rtf
files.zip       | other    | described  | described    | described        | application/zip
empty.zip       | other    | described  | described    | described        | application/zip
tool.jar        | other    | described  | described    | described        | application/java-archive
app.apk         | other    | described  | described    | described        | application/vnd.android.package-archive
log.gz          | other    | described  | described    | described        | application/gzip
log.bz2         | other    | described  | described    | described        | application/x-bzip2
log.xz          | other    | described  | described    | described        | application/x-xz
files.tar       | other    | described  | described    | described        | application/x-tar
files.7z        | other    | described  | described    | described        | application/x-7z-compressed
files.rar       | other    | described  | described    | described        | application/x-rar-compressed
log.zst         | other    | described  | described    | described        | application/zstd
data.sqlite     | other    | described  | described    | described        | application/vnd.sqlite3
program         | other    | described  | described    | described        | application/x-executable
setup.exe       | other    | described  | described    | described | application/vnd.microsoft.portable-executable
module.wasm     | other    | described  | described    | described        | application/wasm
Main.class      | other    | described  | described    | described        | application/java-vm
letters.ttf     | other    | described  | described    | described        | font/ttf
letters.otf     | other    | described  | described    | described        | font/otf
letters.woff2   | other    | described  | described    | described        | font/woff2
noise.bin       | other    | described  | described    | described        | application/octet-stream
notes.txt       | text     | inlined    | inlined      | inlined          | text/plain
zh.txt          | text     | inlined    | inlined      | inlined          | text/plain
marked.txt      | text     | inlined    | inlined      | inlined          | text/plain
gbk.txt         | text     | inlined    | inlined      | inlined          | text/plain
gbk.csv         | text     | inlined    | inlined      | inlined          | text/csv
big5.txt        | text     | inlined    | inlined      | inlined          | text/plain
sjis.txt        | text     | inlined    | inlined      | inlined          | text/plain
utf16.txt       | text     | inlined    | inlined      | inlined          | text/plain
utf16le.txt     | text     | inlined    | inlined      | inlined          | text/plain
utf16be.txt     | text     | inlined    | inlined      | inlined          | text/plain
latin.txt       | text     | inlined    | inlined      | inlined          | text/plain
readme.md       | text     | inlined    | inlined      | inlined          | text/markdown
data.json       | text     | inlined    | inlined      | inlined          | application/json
lines.jsonl     | text     | inlined    | inlined      | inlined          | application/x-ndjson
table.csv       | text     | inlined    | inlined      | inlined          | text/csv
table.tsv       | text     | inlined    | inlined      | inlined          | text/tab-separated-values
page.html       | text     | inlined    | inlined      | inlined          | text/html
data.xml        | text     | inlined    | inlined      | inlined          | application/xml
drawing.svg     | text     | inlined    | inlined      | inlined          | image/svg+xml
config.yaml     | text     | inlined    | inlined      | inlined          | application/yaml
config.toml     | text     | inlined    | inlined      | inlined          | application/toml
config.ini      | text     | inlined    | inlined      | inlined          | text/plain
tool.py         | text     | inlined    | inlined      | inlined          | text/x-python
tool.js         | text     | inlined    | inlined      | inlined          | text/javascript
tool.sh         | text     | inlined    | inlined      | inlined          | application/x-sh
tool.rs         | text     | inlined    | inlined      | inlined          | text/x-rust
query.sql       | text     | inlined    | inlined      | inlined          | application/sql
captions.vtt    | text     | inlined    | inlined      | inlined          | text/vtt
captions.srt    | text     | inlined    | inlined      | inlined          | application/x-subrip
meeting.ics     | text     | inlined    | inlined      | inlined          | text/calendar
card.vcf        | text     | inlined    | inlined      | inlined          | text/vcard
mail.eml        | text     | inlined    | inlined      | inlined          | message/rfc822
page.mht        | text     | inlined    | inlined      | inlined          | multipart/related
types.ts        | text     | inlined    | inlined      | inlined          | text/plain
study.ipynb     | text     | inlined    | inlined      | inlined          | application/x-ipynb+json
words.bin       | text     | inlined    | inlined      | inlined          | text/plain
"""
"""One line a file. `ooxml:`, `odf:` and `vnd:` stand for the long beginnings of the office types."""


def rows() -> dict[str, tuple[str, ...]]:
    """File → kind, the three outcomes, type."""
    lines = [tuple(cell.strip() for cell in line.split("|")) for line in TABLE.strip().splitlines()]
    assert lines[0] == ("file", "kind", *SERVICES, "type")
    return {name: tuple(cells) for name, *cells in lines[1:]}


EXPECTED = rows()


def test_every_sample_has_its_line_and_there_are_sixty_at_least() -> None:
    """No file is without an expectation, no expectation without a file, no name stands twice."""
    assert sorted(EXPECTED) == sorted(sample.name for sample in SAMPLES)
    assert len(TABLE.strip().splitlines()) - 1 == len(EXPECTED) >= 60
    assert len({cells[-1] for cells in EXPECTED.values()}) >= 60


@pytest.mark.requirement("ABR-1.1", "ABR-2.1", "MCR-2.1")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_sample_is_taken_for_what_it_is_and_sent_as_the_table_says(sample: Sample, tmp_path: Path) -> None:
    """Stored and detected without a declaration, then prepared for each service as a request would be."""
    file = keep(FileStore(tmp_path), sample).part()
    kind, *outcomes, mime_type = EXPECTED[sample.name]
    mime_type = mime_type.replace("ooxml:", OOXML).replace("odf:", ODF).replace("vnd:", "application/vnd.")
    assert (file.kind.value, file.mime_type) == (kind, mime_type)
    chat = ChatRequest((Message(Role.USER, (file,)),))
    target = Target("demo", "https://api.example.com/v1", "any")
    for (service, capabilities), outcome in zip(SERVICES.items(), outcomes, strict=True):
        sent = prepare(chat, receiver("openai", target, capabilities), text_style_for(chat, "en", lambda _: ()))
        assert not isinstance(sent, CannotRead)
        assert (service, sent.deliveries[0].delivery.outcome.value) == (service, outcome)
