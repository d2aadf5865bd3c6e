"""File type names for users and models, such as `PNG 图片` or `PDF document`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from capabilities.core.texts.phrases import nearest_language

NOUNS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "image": ("图片", "image"),
        "audio": ("音频", "audio"),
        "video": ("视频", "video"),
        "document": ("文档", "document"),
        "spreadsheet": ("表格", "spreadsheet"),
        "presentation": ("演示", "presentation"),
        "archive": ("压缩包", "archive"),
    }
)

FORMATS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "image": {
            "image/jpeg": "JPEG",
            "image/png": "PNG",
            "image/gif": "GIF",
            "image/webp": "WebP",
            "image/bmp": "BMP",
            "image/svg+xml": "SVG",
            "image/tiff": "TIFF",
            "image/avif": "AVIF",
            "image/heic": "HEIC",
            "image/heif": "HEIF",
            "image/jp2": "JPEG 2000",
            "image/jxl": "JPEG XL",
            "image/vnd.microsoft.icon": "ICO",
            "image/x-icon": "ICO",
            "image/vnd.adobe.photoshop": "PSD",
            "image/apng": "APNG",
            "image/qoi": "QOI",
            "image/x-tga": "TGA",
            "image/x-exr": "EXR",
            "image/emf": "EMF",
            "image/wmf": "WMF",
            "image/x-pcx": "PCX",
            "image/x-sun-raster": "Sun Raster",
            "image/ktx": "KTX",
            "image/ktx2": "KTX2",
            "image/x-panasonic-rw2": "RW2",
            "image/x-fuji-raf": "RAF",
            "image/icns": "ICNS",
            "image/vnd.ms-dds": "DDS",
            "image/jls": "JPEG-LS",
            "image/jxr": "JPEG XR",
            "image/x-jng": "JNG",
            "image/vnd.radiance": "HDR",
            "image/x-sgi": "SGI",
            "image/x-dpx": "DPX",
            "image/x-cineon": "Cineon",
            "image/x-miff": "MIFF",
            "image/x-portable-bitmap": "PBM",
            "image/x-portable-graymap": "PGM",
            "image/x-portable-pixmap": "PPM",
            "image/x-msp": "Microsoft Paint",
            "image/x-ifunc": "IM",
            "image/x-wordperfect-graphics": "WordPerfect",
            "image/x-portable-arbitrarymap": "PAM",
            "image/x-portable-floatmap": "PFM",
            "image/x-xwindowdump": "XWD",
            "image/x-ilbm": "ILBM",
            "image/nitf": "NITF",
            "image/vnd.dwg": "DWG",
        },
        "audio": {
            "audio/mpeg": "MP3",
            "audio/mp3": "MP3",
            "audio/wav": "WAV",
            "audio/x-wav": "WAV",
            "audio/ogg": "OGG",
            "audio/opus": "Opus",
            "audio/flac": "FLAC",
            "audio/aac": "AAC",
            "audio/mp4": "M4A",
            "audio/x-m4a": "M4A",
            "audio/webm": "WebM",
            "audio/aiff": "AIFF",
            "audio/x-aiff": "AIFF",
            "audio/amr": "AMR",
            "audio/midi": "MIDI",
            "audio/x-ms-wma": "WMA",
            "audio/basic": "AU",
            "audio/x-ape": "APE",
            "audio/x-wavpack": "WavPack",
            "audio/x-matroska": "MKA",
            "audio/x-caf": "CAF",
            "audio/x-it": "IT",
            "audio/x-s3m": "S3M",
            "audio/x-xm": "XM",
            "audio/x-mod": "MOD",
            "audio/ac3": "AC-3",
            "audio/eac3": "E-AC-3",
            "audio/vnd.dts": "DTS",
            "audio/x-tta": "TTA",
            "audio/x-voc": "VOC",
            "audio/x-w64": "Wave64",
            "audio/x-smaf": "SMAF",
            "audio/x-nist": "SPHERE",
            "audio/x-8svx": "8SVX",
            "audio/vnd.rn-realaudio": "RealAudio",
        },
        "video": {
            "video/mp4": "MP4",
            "video/webm": "WebM",
            "video/quicktime": "QuickTime",
            "video/x-msvideo": "AVI",
            "video/x-matroska": "MKV",
            "video/mpeg": "MPEG",
            "video/ogg": "OGG",
            "video/3gpp": "3GP",
            "video/3gpp2": "3G2",
            "video/mj2": "Motion JPEG 2000",
            "video/x-ms-asf": "ASF",
            "video/mp2t": "MPEG-TS",
            "video/x-flv": "FLV",
            "video/x-ms-wmv": "WMV",
            "application/vnd.rn-realmedia": "RealMedia",
            "application/mxf": "MXF",
            "video/x-mng": "MNG",
            "video/x-nut": "NUT",
            "video/x-ivf": "IVF",
            "video/x-yuv4mpeg": "YUV4MPEG",
            "video/h264": "H.264",
            "video/h265": "H.265",
        },
        "document": {
            "application/pdf": "PDF",
            "application/msword": "Word",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.template": "Word",
            "application/vnd.ms-word.document.macroenabled.12": "Word",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "Word",
            "application/vnd.oasis.opendocument.text": "ODT",
            "application/vnd.oasis.opendocument.graphics": "ODG",
            "application/vnd.oasis.opendocument.text-template": "ODT",
            "application/vnd.oasis.opendocument.graphics-template": "ODG",
            "application/vnd.ms-word.template.macroenabled.12": "Word",
            "application/ofd": "OFD",
            "application/x-hwp": "HWP",
            "application/hwp+zip": "HWPX",
            "application/vnd.ms-publisher": "Publisher",
            "application/vnd.ms-project": "Project",
            "application/vnd.ms-works": "Works",
            "application/vnd.wordperfect": "WordPerfect",
            "application/vnd.mif": "FrameMaker",
            "image/vnd.djvu": "DjVu",
            "application/vnd.visio": "Visio",
            "application/onenote": "OneNote",
            "application/vnd.apple.pages": "Pages",
            "application/x-mobipocket-ebook": "MOBI",
            "application/oxps": "XPS",
            "application/rtf": "RTF",
            "text/rtf": "RTF",
            "application/epub+zip": "EPUB",
            "application/postscript": "PostScript",
        },
        "spreadsheet": {
            "application/vnd.ms-excel": "Excel",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.template": "Excel",
            "application/vnd.ms-excel.sheet.macroenabled.12": "Excel",
            "application/vnd.ms-excel.sheet.binary.macroenabled.12": "Excel",
            "application/vnd.ms-excel.template.macroenabled.12": "Excel",
            "application/vnd.oasis.opendocument.spreadsheet-template": "ODS",
            "application/vnd.apple.numbers": "Numbers",
            "application/vnd.lotus-1-2-3": "Lotus 1-2-3",
            "application/x-quattro-pro": "Quattro Pro",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "Excel",
            "application/vnd.oasis.opendocument.spreadsheet": "ODS",
        },
        "presentation": {
            "application/vnd.ms-powerpoint": "PowerPoint",
            "application/vnd.openxmlformats-officedocument.presentationml.slideshow": "PowerPoint",
            "application/vnd.ms-powerpoint.presentation.macroenabled.12": "PowerPoint",
            "application/vnd.openxmlformats-officedocument.presentationml.template": "PowerPoint",
            "application/vnd.ms-powerpoint.template.macroenabled.12": "PowerPoint",
            "application/vnd.ms-powerpoint.slideshow.macroenabled.12": "PowerPoint",
            "application/vnd.oasis.opendocument.presentation-template": "ODP",
            "application/vnd.apple.keynote": "Keynote",
            "application/vnd.openxmlformats-officedocument.presentationml.presentation": "PowerPoint",
            "application/vnd.oasis.opendocument.presentation": "ODP",
        },
        "archive": {
            "application/zip": "ZIP",
            "application/x-rar-compressed": "RAR",
            "application/vnd.rar": "RAR",
            "application/x-7z-compressed": "7z",
            "application/gzip": "GZIP",
            "application/x-tar": "TAR",
            "application/x-bzip2": "BZIP2",
            "application/x-xz": "XZ",
            "application/zstd": "ZSTD",
            "application/java-archive": "JAR",
            "application/vnd.android.package-archive": "APK",
            "application/vnd.ms-cab-compressed": "CAB",
            "application/x-lz4": "LZ4",
            "application/x-lzip": "LZIP",
            "application/x-lzma": "LZMA",
            "application/x-lzop": "LZO",
            "application/x-arj": "ARJ",
            "application/x-lha": "LHA",
            "application/x-cpio": "CPIO",
            "application/x-ms-wim": "WIM",
            "application/x-rpm": "RPM",
        },
    }
)

SPECIAL_NAMES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "application/octet-stream": ("二进制文件", "binary file"),
        "application/vnd.ms-outlook": ("Outlook 邮件", "Outlook message"),
        "application/vnd.ms-outlook-pst": ("Outlook 数据文件", "Outlook data file"),
    }
)
"""Maps MIME types to names that do not consist of a format and a noun."""

FORMAT_NAMES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {mime_type: (name, noun) for noun, formats in FORMATS.items() for mime_type, name in formats.items()}
)


def friendly_type(mime_type: str, language: str | None) -> str:
    """Return a readable name for a MIME type, such as `PNG 图片` or `PNG image`.

    An unknown type is returned unchanged.
    """
    english = nearest_language(language) == "en"
    if mime_type in SPECIAL_NAMES:
        return SPECIAL_NAMES[mime_type][english]
    if mime_type not in FORMAT_NAMES:
        return mime_type
    name, noun = FORMAT_NAMES[mime_type]
    return f"{name} {NOUNS[noun][english]}"
