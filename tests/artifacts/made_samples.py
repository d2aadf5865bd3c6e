"""Small files in the directory `files`, written for these tests by the programs that the table names.

LibreOffice wrote letters, spreadsheets, presentations and drawings, ffmpeg a tone and a test picture, ImageMagick a
gradient, GDAL a point, and Python libraries a few numbers. All contents were made for these tests, so no licence
applies.
"""

from __future__ import annotations

from pathlib import Path

FILES = Path(__file__).parent / "files"

# Each row has a file, the program that wrote it, the file's kind, encoding and type, and the type detected without the
# name if that is less specific.
SAMPLE_TABLE = """
archiver.7z          | 7-zip 16.02      | other    |       | application/x-7z-compressed
files.wim            | 7-zip 16.02      | other    |       | application/x-ms-wim
locked.7z            | 7-zip 16.02      | other    |       | application/x-7z-compressed
locked.zip           | 7-zip 16.02      | other    |       | application/zip
files.arj            | arj 3.10         | other    |       | application/x-arj
plain.cbor           | cbor2            | other    |       | application/cbor | application/octet-stream
photo.djvu           | djvulibre 3.5    | document |       | image/vnd.djvu
t.deb                | dpkg 1.21        | other    |       | vnd:debian.binary-package
ebooklib.epub        | ebooklib         | document |       | application/epub+zip
rows.avro            | fastavro         | other    |       | vnd:apache.avro
alaw.wav             | ffmpeg 5.1       | audio    |       | audio/wav
av1.mp4              | ffmpeg 5.1       | video    |       | video/mp4
film.3g2             | ffmpeg 5.1       | video    |       | video/3gpp2
film.3gp             | ffmpeg 5.1       | video    |       | video/3gpp
film.apng            | ffmpeg 5.1       | image    |       | image/apng | image/png
film.asf             | ffmpeg 5.1       | video    |       | video/x-ms-wmv
film.avi             | ffmpeg 5.1       | video    |       | video/x-msvideo
film.avif            | ffmpeg 5.1       | image    |       | image/avif
film.f4v             | ffmpeg 5.1       | video    |       | video/mp4
film.flv             | ffmpeg 5.1       | video    |       | video/x-flv
film.h264            | ffmpeg 5.1       | video    |       | video/h264
film.hevc            | ffmpeg 5.1       | video    |       | video/h265
film.ivf             | ffmpeg 5.1       | video    |       | video/x-ivf
film.m2ts            | ffmpeg 5.1       | video    |       | video/mp2t
film.m2v             | ffmpeg 5.1       | video    |       | video/mpeg
film.m4v             | ffmpeg 5.1       | video    |       | video/mp4
film.mkv             | ffmpeg 5.1       | video    |       | video/x-matroska
film.mov             | ffmpeg 5.1       | video    |       | video/quicktime
film.mp4             | ffmpeg 5.1       | video    |       | video/mp4
film.mpg             | ffmpeg 5.1       | video    |       | video/mpeg
film.mxf             | ffmpeg 5.1       | video    |       | application/mxf
film.nut             | ffmpeg 5.1       | video    |       | video/x-nut
film.ogv             | ffmpeg 5.1       | video    |       | video/ogg
film.rm              | ffmpeg 5.1       | video    |       | vnd:rn-realmedia
film.swf             | ffmpeg 5.1       | other    |       | application/x-shockwave-flash
film.ts              | ffmpeg 5.1       | video    |       | video/mp2t
film.vob             | ffmpeg 5.1       | video    |       | video/mpeg
film.webm            | ffmpeg 5.1       | video    |       | video/webm
film.webp            | ffmpeg 5.1       | image    |       | image/webp
film.wmv             | ffmpeg 5.1       | video    |       | video/x-ms-wmv
film.y4m             | ffmpeg 5.1       | video    |       | video/x-yuv4mpeg
h264.mp4             | ffmpeg 5.1       | video    |       | video/mp4
h265.mp4             | ffmpeg 5.1       | video    |       | video/mp4
mp4 sound.mp4        | ffmpeg 5.1       | audio    |       | audio/mp4
rf64.wav             | ffmpeg 5.1       | audio    |       | audio/wav
sine.aac             | ffmpeg 5.1       | audio    |       | audio/aac
sine.ac3             | ffmpeg 5.1       | audio    |       | audio/ac3
sine.aiff            | ffmpeg 5.1       | audio    |       | audio/aiff
sine.au              | ffmpeg 5.1       | audio    |       | audio/basic
sine.caf             | ffmpeg 5.1       | audio    |       | audio/x-caf
sine.dts             | ffmpeg 5.1       | audio    |       | audio/vnd.dts
sine.eac3            | ffmpeg 5.1       | audio    |       | audio/eac3 | audio/ac3
sine.flac            | ffmpeg 5.1       | audio    |       | audio/flac
sine.m4a             | ffmpeg 5.1       | audio    |       | audio/mp4
sine.mka             | ffmpeg 5.1       | audio    |       | audio/x-matroska
sine.mmf             | ffmpeg 5.1       | audio    |       | audio/x-smaf
sine.mp2             | ffmpeg 5.1       | audio    |       | audio/mpeg
sine.mp3             | ffmpeg 5.1       | audio    |       | audio/mpeg
sine.oga             | ffmpeg 5.1       | audio    |       | audio/ogg
sine.ogg             | ffmpeg 5.1       | audio    |       | audio/ogg
sine.opus            | ffmpeg 5.1       | audio    |       | audio/ogg
sine.ra              | ffmpeg 5.1       | audio    |       | audio/vnd.rn-realaudio | vnd:rn-realmedia
sine.spx             | ffmpeg 5.1       | audio    |       | audio/ogg
sine.tta             | ffmpeg 5.1       | audio    |       | audio/x-tta
sine.voc             | ffmpeg 5.1       | audio    |       | audio/x-voc
sine.w64             | ffmpeg 5.1       | audio    |       | audio/x-w64
sine.wav             | ffmpeg 5.1       | audio    |       | audio/wav
sine.weba            | ffmpeg 5.1       | audio    |       | audio/webm
sine.wma             | ffmpeg 5.1       | audio    |       | audio/x-ms-wma
sine.wv              | ffmpeg 5.1       | audio    |       | audio/x-wavpack
vp9.webm             | ffmpeg 5.1       | video    |       | video/webm
built.otf            | fonttools 4      | other    |       | font/otf
built.ttc            | fonttools 4      | other    |       | font/collection
built.ttf            | fonttools 4      | other    |       | font/ttf
built.woff           | fonttools 4      | other    |       | font/woff
built.woff2          | fonttools 4      | other    |       | font/woff2
height.asc           | gdal 3.6         | text     | utf-8 | text/plain
map.img              | gdal 3.6         | other    |       | application/x-erdas-hfa
map.ntf              | gdal 3.6         | image    |       | image/nitf
map.tif              | gdal 3.6         | image    |       | image/tiff
place.dbf            | gdal 3.6         | other    |       | vnd:dbf
place.fgb            | gdal 3.6         | other    |       | vnd:flatgeobuf
place.geojsonl       | gdal 3.6         | text     | utf-8 | application/x-ndjson
place.gml            | gdal 3.6         | text     | utf-8 | application/gml+xml
place.gpx            | gdal 3.6         | text     | utf-8 | application/gpx+xml
place.kml            | gdal 3.6         | text     | utf-8 | vnd:google-earth.kml+xml
place.shp            | gdal 3.6         | other    |       | vnd:shp
place.shx            | gdal 3.6         | other    |       | vnd:shx | vnd:shp
places.kmz           | gdal 3.6         | other    |       | vnd:google-earth.kmz
plan.dxf             | gdal 3.6         | text     | utf-8 | text/plain
words.mo             | gettext 0.21     | other    |       | application/x-gettext-translation
ghostscript.pdf      | ghostscript 10.0 | document |       | application/pdf
office.xps           | ghostscript 10.0 | document |       | application/oxps
page.pcl             | ghostscript 10.0 | document |       | vnd:hp-pcl
page.pxl             | ghostscript 10.0 | document |       | vnd:hp-pcl
files.tar.bz2        | gnu tar 1.34     | other    |       | application/x-bzip2
files.tar.gz         | gnu tar 1.34     | other    |       | application/gzip
files.tar.xz         | gnu tar 1.34     | other    |       | application/x-xz
library.h5           | h5py             | other    |       | application/x-hdf5
openjpeg.j2k         | imagecodecs      | image    |       | image/jp2
photo.jls            | imagecodecs      | image    |       | image/jls
photo.jxr            | imagecodecs      | image    |       | image/jxr
photo.qoi            | imagecodecs      | image    |       | image/qoi
magick.avif          | imagemagick 6.9  | image    |       | image/avif
magick.bmp           | imagemagick 6.9  | image    |       | image/bmp
magick.cin           | imagemagick 6.9  | image    |       | image/x-cineon
magick.dds           | imagemagick 6.9  | image    |       | image/vnd.ms-dds
magick.dib           | imagemagick 6.9  | image    |       | image/bmp | application/octet-stream
magick.dpx           | imagemagick 6.9  | image    |       | image/x-dpx
magick.fits          | imagemagick 6.9  | image    |       | image/fits
magick.hdr           | imagemagick 6.9  | image    |       | image/vnd.radiance
magick.heic          | imagemagick 6.9  | image    |       | image/heic
magick.ico           | imagemagick 6.9  | image    |       | image/x-icon
magick.jng           | imagemagick 6.9  | image    |       | image/x-jng
magick.jp2           | imagemagick 6.9  | image    |       | image/jp2
magick.jpg           | imagemagick 6.9  | image    |       | image/jpeg
magick.miff          | imagemagick 6.9  | image    |       | image/x-miff
magick.mng           | imagemagick 6.9  | video    |       | video/x-mng
magick.pam           | imagemagick 6.9  | image    |       | image/x-portable-arbitrarymap
magick.pcx           | imagemagick 6.9  | image    |       | image/x-pcx
magick.pfm           | imagemagick 6.9  | image    |       | image/x-portable-floatmap
magick.png           | imagemagick 6.9  | image    |       | image/png
magick.psb           | imagemagick 6.9  | image    |       | image/vnd.adobe.photoshop
magick.psd           | imagemagick 6.9  | image    |       | image/vnd.adobe.photoshop
magick.sgi           | imagemagick 6.9  | image    |       | image/x-sgi
magick.sun           | imagemagick 6.9  | image    |       | image/x-sun-raster
magick.tga           | imagemagick 6.9  | image    |       | image/x-tga | application/octet-stream
magick.tiff          | imagemagick 6.9  | image    |       | image/tiff
magick.webp          | imagemagick 6.9  | image    |       | image/webp
magick.xbm           | imagemagick 6.9  | text     | utf-8 | text/plain
magick.xpm           | imagemagick 6.9  | text     | utf-8 | text/plain
magick.xwd           | imagemagick 6.9  | image    |       | image/x-xwindowdump
points.las           | laspy            | other    |       | vnd:las
encoder.heic         | libheif 1.15     | image    |       | image/heic
box.jxl              | libjxl 0.7       | image    |       | image/jxl
code.jxl             | libjxl 0.7       | image    |       | image/jxl | application/octet-stream
letter.docm | libreoffice 7.4 | document |  | vnd:ms-word.document.macroenabled.12 | ooxml:wordprocessingml.document
letter.dot           | libreoffice 7.4  | document |       | application/msword
letter.dotx | libreoffice 7.4 | document |  | ooxml:wordprocessingml.template | ooxml:wordprocessingml.document
letter.epub          | libreoffice 7.4  | document |       | application/epub+zip
letter.ott           | libreoffice 7.4  | document |       | odf:text-template
letter.xhtml         | libreoffice 7.4  | text     | utf-8 | application/xhtml+xml
office.docx          | libreoffice 7.4  | document |       | ooxml:wordprocessingml.document
office.odp           | libreoffice 7.4  | document |       | odf:presentation
office.ods           | libreoffice 7.4  | document |       | odf:spreadsheet
office.odt           | libreoffice 7.4  | document |       | odf:text
office.rtf           | libreoffice 7.4  | document |       | application/rtf
office.xls           | libreoffice 7.4  | document |       | vnd:ms-excel
office.xlsx          | libreoffice 7.4  | document |       | ooxml:spreadsheetml.sheet
pic.emf              | libreoffice 7.4  | image    |       | image/emf
pic.odg              | libreoffice 7.4  | document |       | odf:graphics
pic.otg              | libreoffice 7.4  | document |       | odf:graphics-template
pic.wmf              | libreoffice 7.4  | image    |       | image/wmf
plain.doc            | libreoffice 7.4  | document |       | application/msword
sums.dif             | libreoffice 7.4  | text     | utf-8 | text/plain
sums.fods            | libreoffice 7.4  | text     | utf-8 | application/xml
sums.ots             | libreoffice 7.4  | document |       | odf:spreadsheet-template
sums.slk             | libreoffice 7.4  | text     | utf-8 | text/plain
sums.xlsm | libreoffice 7.4 | document |  | vnd:ms-excel.sheet.macroenabled.12 | ooxml:spreadsheetml.sheet
sums.xltx            | libreoffice 7.4  | document |       | ooxml:spreadsheetml.template | ooxml:spreadsheetml.sheet
talk.otp             | libreoffice 7.4  | document |       | odf:presentation-template
talk.potx | libreoffice 7.4 | document |  | ooxml:presentationml.template | ooxml:presentationml.presentation
talk.ppsx | libreoffice 7.4 | document |  | ooxml:presentationml.slideshow | ooxml:presentationml.presentation
word2003.xml         | libreoffice 7.4  | text     | utf-8 | application/xml
files.tar.lz4        | lz4 1.9          | other    |       | application/x-lz4
files.tar.lz         | lzip 1.23        | other    |       | application/x-lzip
words.lzo            | lzop 1.04        | other    |       | application/x-lzop
data.msgpack         | msgpack          | other    |       | vnd:msgpack | application/octet-stream
new.nc               | netCDF4          | other    |       | application/x-netcdf | application/x-hdf5
old.nc               | netCDF4          | other    |       | application/x-netcdf
locked.docx          | msoffcrypto-tool | document |       | ooxml:wordprocessingml.document | application/x-ole-storage
locked.xlsx          | msoffcrypto-tool | document |       | ooxml:spreadsheetml.sheet | application/x-ole-storage
brain.nii            | nibabel          | other    |       | application/x-nifti
brain.nii.gz         | nibabel          | other    |       | application/gzip
arrays.npz           | numpy            | other    |       | application/zip
numpy.npy            | numpy            | other    |       | application/x-npy
openpyxl.xlsx        | openpyxl         | document |       | ooxml:spreadsheetml.sheet
cert.der             | openssl 3.0      | other    |       | application/pkix-cert
cert.pem             | openssl 3.0      | text     | utf-8 | application/x-pem-file
pillow.heic          | pillow-heif      | image    |       | image/heic
arrow.parquet        | pyarrow          | other    |       | vnd:apache.parquet
table.feather        | pyarrow          | other    |       | vnd:apache.arrow.file
table.orc            | pyarrow          | other    |       | application/x-orc
pydicom.dcm          | pydicom          | other    |       | application/dicom
m.pyc                | python 3.11      | other    |       | application/x-python-bytecode | application/octet-stream
t.rpm                | rpm 4.18         | other    |       | application/x-rpm
model.safetensors    | safetensors      | other    |       | application/x-safetensors
data.mat             | scipy            | other    |       | application/x-matlab-data
sine.8svx            | sox 14.4         | audio    |       | audio/x-8svx
sine.sph             | sox 14.4         | audio    |       | audio/x-nist
files.squashfs       | squashfs-tools 4.5 | other    |       | application/x-squashfs
data.pickle          | standard library | other    |       | application/x-python-pickle
t-1-py3-none-any.whl | standard library | other    |       | application/zip
xlwt.xls             | xlwt             | document |       | vnd:ms-excel
words.lzma           | xz 5.4           | other    |       | application/x-lzma
files.tar.zst        | zstd 1.5         | other    |       | application/zstd
cert.p12             | openssl 3.0      | other    |       | application/x-pkcs12
box.3mf              | trimesh          | other    |       | model/3mf
box.glb              | trimesh          | other    |       | model/gltf-binary
box.obj              | trimesh          | text     | utf-8 | model/obj
box.ply              | trimesh          | other    |       | model/ply
box.stl              | trimesh          | other    |       | model/stl | application/octet-stream
dpkt.pcap            | dpkt             | other    |       | vnd:tcpdump.pcap
dpkt.pcapng          | dpkt             | other    |       | vnd:tcpdump.pcap
eccodes.grib2        | eccodes          | other    |       | application/x-grib
film.exr             | ffmpeg 5.1       | image    |       | image/x-exr
gcc.elf              | gcc 12.2         | other    |       | application/x-executable
gnome.cab            | gcab 1.5         | other    |       | vnd:ms-cab-compressed
gnu.cpio             | cpio 2.13        | other    |       | application/x-cpio
mido.mid             | mido             | audio    |       | audio/midi
mingw.exe            | mingw-w64 10     | other    |       | vnd:microsoft.portable-executable
netpbm.lbm           | netpbm 11        | image    |       | image/x-ilbm
python.lnk           | pylnk3           | other    |       | application/x-ms-shortcut
scan.nrrd            | pynrrd           | other    |       | application/x-nrrd
small.iso            | genisoimage 1.1  | other    |       | application/x-iso9660-image
torf.torrent         | torf             | other    |       | application/x-bittorrent
wabt.wasm            | wabt 1.0         | other    |       | application/wasm
words.Z              | ncompress 4.2    | other    |       | application/x-compress
writer.gguf          | gguf             | other    |       | application/x-gguf
"""

# Abbreviations that the tables use for long MIME type prefixes.
LONG_NAMES = (
    ("ooxml:", "application/vnd.openxmlformats-officedocument."),
    ("odf:", "application/vnd.oasis.opendocument."),
    ("vnd:", "application/vnd."),
)


def expand_mime_type(mime_type: str) -> str:
    for short, beginning in LONG_NAMES:
        mime_type = mime_type.replace(short, beginning)
    return mime_type


def rows() -> list[tuple[str, ...]]:
    lines = [tuple(cell.strip() for cell in line.split("|")) for line in SAMPLE_TABLE.strip().splitlines()]
    return [
        (*cells[:4], expand_mime_type(cells[4]), expand_mime_type(cells[5]) if len(cells) > 5 else "")
        for cells in lines
    ]
