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
texture.ktx          | image    | described | described | described | image/ktx
texture.ktx2         | image    | described | described | described | image/ktx2
raw.rw2              | image    | described | described | described | image/x-panasonic-rw2
raw.cr2              | image    | described | described | described | image/x-canon-cr2
raw.cr3              | image    | described | described | described | image/x-canon-cr3
raw.raf              | image    | described | described | described | image/x-fuji-raf
scan.pcx             | image    | described | described | described | image/x-pcx
grey.pcx             | image    | described | described | described | image/x-pcx
scan.ras             | image    | described | described | described | image/x-sun-raster
app.icns             | image    | described | described | described | image/icns
texture.dds          | image    | described | described | described | image/vnd.ms-dds
photo.j2k            | image    | described | described | described | image/jp2
photo.ppm            | image    | described | described | described | image/x-portable-pixmap
photo.pgm            | image    | described | described | described | image/x-portable-graymap
photo.pbm            | image    | described | described | described | image/x-portable-bitmap
large.tif            | image    | described | described | described | image/tiff
light.exr            | image    | described | described | described | image/x-exr
layers.xcf           | image    | described | described | described | image/x-xcf
sky.fits             | image    | described | described | described | image/fits
drawing.emf          | image    | described | described | described | image/emf
drawing.wmf          | image    | described | described | described | image/wmf
tune.it              | audio    | described | described | described | audio/x-it
tune.s3m             | audio    | described | described | described | audio/x-s3m
tune.xm              | audio    | described | described | described | audio/x-xm
tune.mod             | audio    | described | described | described | audio/x-mod
song.ape             | audio    | described | described | described | audio/x-ape
song.wv              | audio    | described | described | described | audio/x-wavpack
song.caf             | audio    | described | described | described | audio/x-caf
song.dsf             | audio    | described | described | described | audio/x-dsf
tagged.aac           | audio    | described | described | described | audio/aac
tagged.flac          | audio    | described | described | described | audio/flac
voice.awb            | audio    | described | described | described | audio/amr
clip.mj2             | video    | described | described | described | video/mj2
phone.3g2            | video    | described | described | described | video/3gpp2
kddi.3g2             | video    | described | described | described | video/3gpp2
clip.m4v             | video    | described | described | described | video/mp4
clip.mts             | video    | described | described | described | video/mp2t
pictures.mpg         | video    | described | described | described | video/mpeg
data.odb             | document | described | described | described | odf:base
drawing.odg          | document | described | described | described | odf:graphics
notes.one            | document | described | described | described | application/onenote
notes.onetoc2        | document | described | described | described | application/onenote
sums.wk1             | document | described | described | described | application/vnd.lotus-1-2-3
sums.wk3             | document | described | described | described | application/vnd.lotus-1-2-3
sums.wq1             | document | described | described | described | application/x-quattro-pro
sums.wb1             | document | described | described | described | application/x-quattro-pro
book.mobi            | document | described | described | described | application/x-mobipocket-ebook
help.chm             | document | described | described | described | application/vnd.ms-htmlhelp
page.xps             | document | described | described | described | application/oxps
macro.docm           | document | described | described | described | application/vnd.ms-word.document.macroenabled.12
macro.xlsm           | document | described | described | described | application/vnd.ms-excel.sheet.macroenabled.12
macro.pptm | document | described | described | described | application/vnd.ms-powerpoint.presentation.macroenabled.12
letter.pages         | document | described | described | described | application/vnd.apple.pages
plan.vsd             | document | described | described | described | application/vnd.visio
unknown.ole          | document | described | described | described | application/x-ole-storage
letter attached.msg  | document | described | described | described | application/vnd.ms-outlook
chart inside.ppt     | document | described | described | described | application/vnd.ms-powerpoint
letter inside.xls    | document | described | described | described | application/vnd.ms-excel
data.mdb             | other    | described | described | described | application/x-msaccess
data.accdb           | other    | described | described | described | application/x-msaccess
data.cbor            | other    | described | described | described | application/cbor
words.ar             | other    | described | described | described | application/x-archive
library.a            | other    | described | described | described | application/x-archive
tool.deb             | other    | described | described | described | application/vnd.debian.binary-package
files.cab            | other    | described | described | described | application/vnd.ms-cab-compressed
disk.iso             | other    | described | described | described | application/x-iso9660-image
log.lz4              | other    | described | described | described | application/x-lz4
old.rar              | other    | described | described | described | application/x-rar-compressed
scan.dcm             | other    | described | described | described | application/dicom
table.parquet        | other    | described | described | described | application/vnd.apache.parquet
data.h5              | other    | described | described | described | application/x-hdf5
array.npy            | other    | described | described | described | application/x-npy
net.pcap             | other    | described | described | described | application/vnd.tcpdump.pcap
program.macho        | other    | described | described | described | application/x-mach-binary
universal.macho      | other    | described | described | described | application/x-mach-binary
game.swf             | other    | described | described | described | application/x-shockwave-flash
letters.ttc          | other    | described | described | described | font/collection
letters.woff         | other    | described | described | described | font/woff
place.kmz            | other    | described | described | described | application/vnd.google-earth.kmz
captions.ttml        | text     | inlined   | inlined   | inlined   | application/ttml+xml
book.fb2             | text     | inlined   | inlined   | inlined   | application/x-fictionbook+xml
news.rss             | text     | inlined   | inlined   | inlined   | application/rss+xml
news.atom            | text     | inlined   | inlined   | inlined   | application/atom+xml
page.ps              | text     | inlined   | inlined   | inlined   | application/postscript
.env                 | text     | inlined   | inlined   | inlined   | text/plain
.gitignore           | text     | inlined   | inlined   | inlined   | text/plain
ko cp949.txt         | text     | inlined   | inlined   | inlined   | text/plain
ko johab.txt         | text     | inlined   | inlined   | inlined   | text/plain
ko iso2022_kr.txt    | text     | inlined   | inlined   | inlined   | text/plain
ko utf-32-le.txt     | text     | inlined   | inlined   | inlined   | text/plain
ja euc_jp.txt        | text     | inlined   | inlined   | inlined   | text/plain
ja iso2022_jp.txt    | text     | inlined   | inlined   | inlined   | text/plain
ja utf-16-be.txt     | text     | inlined   | inlined   | inlined   | text/plain
zh hz.txt            | text     | inlined   | inlined   | inlined   | text/plain
zh utf-32-be.txt     | text     | inlined   | inlined   | inlined   | text/plain
ru cp1251.txt        | text     | inlined   | inlined   | inlined   | text/plain
ru koi8-r.txt        | text     | inlined   | inlined   | inlined   | text/plain
ru iso8859-5.txt     | text     | inlined   | inlined   | inlined   | text/plain
ru cp866.txt         | text     | inlined   | inlined   | inlined   | text/plain
ru cp855.txt         | text     | inlined   | inlined   | inlined   | text/plain
ru mac-cyrillic.txt  | text     | inlined   | inlined   | inlined   | text/plain
tr cp1254.txt        | text     | inlined   | inlined   | inlined   | text/plain
cs cp1250.txt        | text     | inlined   | inlined   | inlined   | text/plain
el cp1253.txt        | text     | inlined   | inlined   | inlined   | text/plain
he cp1255.txt        | text     | inlined   | inlined   | inlined   | text/plain
ar cp1256.txt        | text     | inlined   | inlined   | inlined   | text/plain
lt cp1257.txt        | text     | inlined   | inlined   | inlined   | text/plain
th cp874.txt         | text     | inlined   | inlined   | inlined   | text/plain
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
