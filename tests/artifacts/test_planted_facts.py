"""Facts planted in office documents and books are found in the extracted text."""

from __future__ import annotations

import io
import zipfile

import pytest
from samples import TYPES, W, build_zip, open_document, relations_xml, xlsx

from artifacts.extract.documents import answer

CONTAINER = b'<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'
PACKAGE = b"""<package xmlns:dc="urn:dc"><metadata><dc:title>The Book</dc:title><dc:creator>Ann Author</dc:creator>
</metadata><manifest><item id="a" href="b.xml"/><item id="b" href="a%20one.xhtml"/><item id="c" href="nav.xhtml"/>
</manifest><spine><itemref idref="a"/><itemref idref="b"/><itemref idref="a"/></spine></package>"""
BOOK = build_zip(
    {
        "META-INF/container.xml": CONTAINER,
        "OPS/book.opf": PACKAGE,
        "OPS/a one.xhtml": b"<p>last</p>",
        "OPS/b.xml": b"<head><title>The Book</title></head><p>first</p><m:math><m:msup><m:mi>u</m:mi><m:mn>2</m:mn>"
        b"</m:msup><m:annotation>u^2</m:annotation></m:math>",
        "OPS/nav.xhtml": b"<p>contents</p>",
    }
)

RTF = rb"""{\rtf1\ansi Word{\super 1{\footnote\pard A note.\par}} after
{\upr{ansi}{\*\ud{\u20320?\u22909?}}}\par
\trowd\pard\intbl Ann\par B\cell 12\cell\row\pard End\par}"""

NUMBERING = """<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl>
<w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
<w:num w:numId="3"><w:abstractNumId w:val="0"/></w:num>"""
STYLES = """<w:style w:styleId="Top"><w:name w:val="heading 1"/><w:numPr><w:numId w:val="4"/></w:numPr></w:style>
<w:style w:styleId="Sub"><w:basedOn w:val="Top"/><w:outlineLvl w:val="1"/><w:numPr><w:ilvl w:val="1"/></w:numPr>
</w:style>
<w:style w:styleId="Points"><w:name w:val="List Bullet"/><w:numPr><w:numId w:val="5"/></w:numPr></w:style>"""


def word_list_item(text: str, level: int, number: int = 3) -> str:
    number = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
    return f"<w:p><w:pPr>{number}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def word_list_level(number: int, kind: str, pattern: str, more: str = "") -> str:
    return f'<w:lvl w:ilvl="{number}"><w:numFmt w:val="{kind}"/><w:lvlText w:val="{pattern}"/>{more}</w:lvl>'


KINDS = {
    "1": word_list_level(0, "upperRoman", "%1.") + word_list_level(1, "decimal", "%1.%2", "<w:isLgl/>"),
    "2": word_list_level(0, "bullet", "•"),
    "3": word_list_level(0, "lowerLetter", "%1)", '<w:start w:val="26"/>'),
    "4": word_list_level(0, "chineseCounting", "第%1条"),
}
SHARED = "".join(
    f'<w:abstractNum w:abstractNumId="{number}">{levels}</w:abstractNum>' for number, levels in KINDS.items()
)
SHARED += "".join(f'<w:num w:numId="{3 + int(n)}"><w:abstractNumId w:val="{n}"/></w:num>' for n in KINDS)
SHARED += """<w:num w:numId="9"><w:abstractNumId w:val="3"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="2"/>
</w:lvlOverride></w:num>"""


def styled_paragraph(text: str, style: str) -> str:
    return f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'


def word_field(instruction: str, result: str) -> str:
    def build_part(kind: str) -> str:
        return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'

    instruction = f"<w:r><w:instrText> {instruction} </w:instrText></w:r>"
    return (
        f"{build_part('begin')}{instruction}{build_part('separate')}<w:r><w:t>{result}</w:t></w:r>{build_part('end')}"
    )


LISTS = (
    "".join(
        styled_paragraph(*pair)
        for pair in (("Scope", "Top"), ("Terms", "Top"), ("Parties", "Sub"), ("buyer", "Points"))
    )
    + word_list_item("after y", 0, 6)
    + word_list_item("after z", 0, 6)
    + word_list_item("elsewhere", 0, 9).replace("</w:pPr>", '<w:pStyle w:val="Points"/></w:pPr>')
    + "".join(word_list_item(f"rule {number}", 0, 7) for number in range(1, 12))
)
LINKS = (
    f"<w:p>{word_field('HYPERLINK &quot;https://example.org/f&quot;', 'field')}</w:p>"
    f"<w:p>{word_field('IF ' + word_field('HYPERLINK https://example.org/g', 'inner'), 'outer')}</w:p>"
    '<w:p><w:r><w:t>10</w:t></w:r><w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>6</w:t></w:r></w:p>'
    "<w:p><w:del><w:r><w:t>deleted</w:t></w:r></w:del><w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom>"
    "<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r><w:r><w:t>left</w:t></w:r></w:p>"
    "<w:p><w:r><w:t>for </w:t></w:r><w:r><w:rPr><w:strike/></w:rPr><w:t>old</w:t></w:r><w:r><w:t> new</w:t></w:r>"
    '<w:r><w:sym w:font="Wingdings" w:char="F0FE"/><w:sym w:font="Symbol" w:char="F061"/></w:r></w:p>'
    '<w:p><w:checkBox><w:default w:val="1"/></w:checkBox><w:r><w:t> agreed</w:t></w:r></w:p>'
    "<w:p><m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr><m:sub><m:r><m:t>i</m:t></m:r></m:sub><m:e><m:d><m:dPr>"
    "<m:begChr m:val='['/><m:endChr m:val=']'/></m:dPr><m:e><m:r><m:t>x</m:t></m:r></m:e></m:d></m:e></m:nary></w:p>"
    '<w:p><w:r><w:t>claim</w:t><w:commentReference w:id="1"/></w:r></w:p>'
    '<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr><w:p><w:r><w:t>wide</w:t></w:r></w:p></w:tc>'
    "<w:tc><w:p><w:r><w:t>end</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    '<w:p><w:r><c:chart xmlns:c="urn:c" r:id="c"/></w:r></w:p>'
)
DOCUMENT = """<w:p><w:hyperlink r:id="x"><w:r><w:t>the </w:t></w:r><w:r><w:t>terms</w:t></w:r></w:hyperlink></w:p>
<w:p><w:r><w:drawing><wp:docPr descr="Revenue rises"/><pic:cNvPr descr="Revenue rises"/></w:drawing>
<w:t>seen</w:t></w:r></w:p>
<w:p><m:f><m:num><m:r><m:t>a+1</m:t></m:r></m:num><m:den><m:r><m:t>b</m:t></m:r></m:den></m:f></w:p>
<w:p><w:r><w:t>noted</w:t><w:footnoteReference w:id="2"/></w:r></w:p>"""


def word_part(name: str, xml: str) -> bytes:
    spaces = f'xmlns:w="{W}" xmlns:r="urn:r" xmlns:wp="urn:wp" xmlns:pic="urn:pic" xmlns:m="urn:m"'
    return f"<w:{name} {spaces}>{xml}</w:{name}>".encode()


def link_relation(address: str) -> bytes:
    return relations_xml({"x": ("hyperlink", address)}).replace(b"Target=", b'TargetMode="External" Target=')


DOCX = build_zip(
    {
        "[Content_Types].xml": TYPES,
        "word/document.xml": word_part(
            "document", DOCUMENT + word_list_item("one", 0) + word_list_item("deep", 1) + word_list_item("two", 0)
        ),
        "word/numbering.xml": word_part("numbering", NUMBERING),
        "word/_rels/document.xml.rels": link_relation("https://example.org/"),
        "word/footnotes.xml": word_part(
            "footnotes", '<w:footnote w:id="2"><w:p><w:r><w:t>A note</w:t></w:r></w:p></w:footnote>'
        ),
        "word/comments.xml": word_part(
            "comments", '<w:comment w:author="Ann" w:id="1"><w:p><w:r><w:t>Why</w:t></w:r></w:p></w:comment>'
        ),
    }
)

CHART = """<c:chartSpace xmlns:c="urn:c" xmlns:a="urn:a"><c:title><a:t>Sales</a:t></c:title><c:ser>
<c:tx><c:pt idx="0"><c:v>North</c:v></c:pt></c:tx>
<c:cat><c:pt idx="0"><c:v>Q1</c:v></c:pt><c:pt idx="1"><c:v>Q2</c:v></c:pt></c:cat>
<c:val><c:pt idx="0"><c:v>12</c:v></c:pt><c:pt idx="1"><c:v>13.5</c:v></c:pt></c:val></c:ser><c:ser>
<c:cat><c:lvl>
<c:pt idx="0"><c:v>Rome</c:v></c:pt><c:pt idx="1"><c:v>Bari</c:v></c:pt><c:pt idx="2"><c:v>Nice</c:v></c:pt>
</c:lvl><c:lvl><c:pt idx="0"><c:v>Italy</c:v></c:pt><c:pt idx="2"><c:v>France</c:v></c:pt></c:lvl></c:cat>
<c:val><c:pt idx="0"><c:v>1</c:v></c:pt><c:pt idx="1"><c:v>2</c:v></c:pt><c:pt idx="2"><c:v>3</c:v></c:pt></c:val>
</c:ser></c:chartSpace>"""

STYLED = build_zip(
    {
        "[Content_Types].xml": TYPES,
        "word/document.xml": word_part("document", LISTS + LINKS),
        "word/styles.xml": word_part("styles", STYLES),
        "word/numbering.xml": word_part("numbering", SHARED),
        "word/_rels/document.xml.rels": relations_xml({"c": ("chart", "charts/chart1.xml")}),
        "word/charts/chart1.xml": CHART.encode(),
    }
)

SLIDE = """<p:sld xmlns:p="urn:p" xmlns:a="urn:a" xmlns:r="urn:r"><p:pic><p:cNvPr id="1" descr="Revenue rises"/></p:pic>
<a:p><a:r><a:rPr><a:hlinkClick r:id="x"/></a:rPr><a:t>terms</a:t></a:r></a:p></p:sld>"""
PPTX = build_zip(
    {
        "[Content_Types].xml": TYPES,
        "ppt/slides/slide1.xml": SLIDE.encode(),
        "ppt/slides/_rels/slide1.xml.rels": link_relation("https://example.org/").replace(
            b"</Relationships>",
            b'<Relationship Id="c" Type="urn:r/chart" Target="../charts/chart1.xml"/></Relationships>',
        ),
        "ppt/charts/chart1.xml": CHART.encode(),
    }
)

DECK = """<p:sld xmlns:p="urn:p" xmlns:a="urn:a" xmlns:r="urn:r"><p:sp><p:ph type="title"/><a:p><a:r>
<a:t>Plan</a:t></a:r></a:p></p:sp><p:sp><p:cNvPr id="1"><a:hlinkClick r:id="x"/></p:cNvPr><a:p><a:r>
<a:t>outer</a:t></a:r></a:p>
<a:p><a:pPr lvl="1"/><a:r><a:t>inner</a:t></a:r></a:p><a:p><a:pPr><a:buAutoNum type="alphaLcParenR"/></a:pPr><a:r>
<a:t>first</a:t></a:r></a:p><a:p><a:pPr><a:buAutoNum type="alphaLcParenR"/></a:pPr><a:r><a:t>second</a:t></a:r></a:p>
<a:p><a:r><a:t>10</a:t></a:r><a:r><a:rPr baseline="30000"/><a:t>3</a:t></a:r></a:p>
<a:p><a:r><a:rPr strike="sngStrike"/><a:t>old</a:t></a:r></a:p></p:sp></p:sld>"""
OLD_COMMENTS = """<p:cmLst xmlns:p="urn:p"><p:cm authorId="0"><p:text>Which year?</p:text></p:cm></p:cmLst>"""
THREAD = """<m:cmLst xmlns:m="urn:m" xmlns:a="urn:a"><m:cm authorId="{A}"><m:replyLst><m:reply authorId="{B}"><m:txBody>
<a:p><a:r><a:t>2031</a:t></a:r></a:p></m:txBody></m:reply></m:replyLst><m:txBody><a:p><a:r><a:t>Since when?</a:t></a:r>
</a:p></m:txBody></m:cm></m:cmLst>"""
COMMENTED = build_zip(
    {
        "[Content_Types].xml": TYPES,
        "ppt/presentation.xml": b"<p:presentation xmlns:p='urn:p'/>",
        "ppt/_rels/presentation.xml.rels": relations_xml(
            {"a": ("commentAuthors", "commentAuthors.xml"), "b": ("authors", "authors.xml")}
        ),
        "ppt/commentAuthors.xml": b"<x><cmAuthor id='0' name='Ann'/></x>",
        "ppt/authors.xml": b"<x><author id='{A}' name='Bo'/><author id='{B}' name='Cy'/></x>",
        "ppt/slides/slide1.xml": DECK.encode(),
        "ppt/slides/_rels/slide1.xml.rels": link_relation("https://example.org/").replace(
            b"</Relationships>",
            b'<Relationship Id="c" Type="urn:r/comments" Target="../comments/comment1.xml"/>'
            b'<Relationship Id="d" Type="urn:s/comments" Target="../comments/thread1.xml"/></Relationships>',
        ),
        "ppt/comments/comment1.xml": OLD_COMMENTS.encode(),
        "ppt/comments/thread1.xml": THREAD.encode(),
    }
)

ODT = open_document(
    "text",
    '<text:h text:outline-level="2">Beta</text:h>'
    '<text:p>See <text:a xmlns:xlink="urn:x" xlink:href="https://example.org/">terms</text:a><text:note>'
    "<text:note-body><text:p>A note</text:p></text:note-body></text:note> after</text:p>"
    "<text:p><draw:frame><draw:image/><svg:desc xmlns:svg='urn:s'>Revenue rises</svg:desc></draw:frame></text:p>"
    "<text:list><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>deep</text:p>"
    "</text:list-item></text:list></text:list-item></text:list>",
)

FORMULA = b"""<math xmlns="urn:m"><semantics><mrow><mfrac><mi>p</mi><mi>q</mi></mfrac><mo>+</mo><msqrt><mi>u</mi>
</msqrt></mrow><annotation encoding="StarMath 5.0">{p} over {q} + sqrt u</annotation></semantics></math>"""
OUTLINE = """<text:outline-style><text:outline-level-style text:level="1" style:num-format="1"/>
<text:outline-level-style text:level="2" style:num-format="1" text:display-levels="2"/></text:outline-style>
<style:header><text:p>Confidential</text:p></style:header><style:header-left><text:p>Confidential</text:p></style:header-left>
<style:footer><text:p>Imprint</text:p></style:footer>"""
STEPS = """<style:style style:name="T1"><style:text-properties style:text-position="super 58%"/></style:style>
<style:style style:name="T2"><style:text-properties style:text-line-through-style="solid"/></style:style>
<text:list-style style:name="L1"><text:list-level-style-number text:level="1" style:num-suffix="."
style:num-format="1"/><text:list-level-style-number text:level="2" style:num-suffix=")" style:num-format="a"/>
</text:list-style>"""


def opendocument_list(*items: str, more: str = "") -> str:
    listed = "".join(f"<text:list-item><text:p>{item}</text:p></text:list-item>" for item in items)
    return f'<text:list text:style-name="L1"{more}>{listed}</text:list>'


NUMBERED = (
    '<text:h text:outline-level="1">Alpha</text:h><text:h text:outline-level="2">Beta</text:h>'
    + opendocument_list("one", f"two</text:p>{opendocument_list('deep')}<text:p>still two")
    + opendocument_list("again")
    + opendocument_list("on", more=' text:continue-numbering="true"')
    + '<text:p>is <draw:object xlink:href="./Object 1"/> here</text:p>'
    "<text:p>claim<office:annotation><dc:creator>Ann</dc:creator><dc:date>2031</dc:date><text:p>Why</text:p>"
    "</office:annotation></text:p><text:p>a<text:s text:c='3'/>b</text:p>"
    "<text:p>10<text:span text:style-name='T1'>6</text:span> m <text:span text:style-name='T2'>old</text:span></text:p>"
    "<table:table><table:table-row><table:table-cell table:number-columns-repeated='2'/><table:table-cell>"
    "<text:p>third</text:p></table:table-cell></table:table-row></table:table>"
)


def build_opendocument(**parts: str) -> bytes:
    """Build an OpenDocument text. Two underscores in a name mean a slash."""
    spaces = " ".join(
        f'xmlns:{name}="urn:{name}"'
        for name in ("office", "text", "style", "draw", "xlink", "dc", "table", "presentation")
    )
    entries = {
        f"{name.replace('__', '/')}.xml": f"<office:document {spaces}>{xml}</office:document>".encode()
        for name, xml in parts.items()
    }
    return build_zip({**entries, "Object 1/content.xml": FORMULA})


WRITTEN = build_opendocument(content=STEPS + NUMBERED, styles=OUTLINE)

DRAWN = rb"""{\rtf1{\header\pard Confidential\par}{\footer\pard\par}\pard\outlinelevel1 {\b Beta}\par\pard
See {\field{\*\fldinst {HYPERLINK "https://example.org/"}}{\fldrslt{the terms}}}\par
10{\super 3{\v unseen}} m{\deleted gone} {\strike old}\par
{\*\shppict{\pict{\*\picprop{\sp{\sn fill}{\sv 1}}{\sp{\sn wzDescription}{\sv Revenue rises}}}00}}seen\par
{\shp{\*\shpinst{\sp{\sn x}{\sv 5}}{\shptxt\pard Box\par}}{\shprslt\pard Box\par}}
claim{\*\atnid A}{\*\atnauthor Ann}\chatn{\*\annotation{\*\atnref 1}\pard Why}\par
\trowd\pard\intbl{\itap2 inner\nestcell}{\nonesttables\par}\cell 2\cell\row\pard}"""

SLIDES = build_opendocument(
    content='<draw:page><draw:frame presentation:class="title"><text:p>Plan</text:p></draw:frame><draw:frame><text:p>'
    "Words</text:p></draw:frame><presentation:notes><text:p/></presentation:notes></draw:page>"
    "<draw:page><text:p>Next</text:p><presentation:notes><text:p>Smile</text:p></presentation:notes></draw:page>"
)

STARRED = rb"{\rtf1 Word{\super\chftn}{\*\footnote\chftn A note.} after}"

HIDDEN = xlsx({"Open": [["seen"]], "Secret": [["kept"]]}, hidden="Secret")

NOTED = build_zip(
    {name: package.read(name) for package in (zipfile.ZipFile(io.BytesIO(HIDDEN)),) for name in package.namelist()}
    | {
        "xl/worksheets/sheet1.xml": b"""<worksheet xmlns:r="urn:r"><sheetData><row r="1"><c r="A1"><v>7</v></c></row>
</sheetData><hyperlinks><hyperlink ref="A1" r:id="x"/></hyperlinks></worksheet>""",
        "xl/worksheets/_rels/sheet1.xml.rels": link_relation("https://example.org/").replace(
            b"</Relationships>",
            b'<Relationship Id="c" Type="urn:r/comments" Target="../comments1.xml"/></Relationships>',
        ),
        "xl/comments1.xml": b"""<comments><authors><author>Ann</author></authors><commentList><comment ref="A1">
<text><r><t>Check</t></r></text></comment></commentList></comments>""",
    }
)

STYLES = """<styleSheet><numFmts><numFmt numFmtId="164" formatCode="dd.mm.yyyy"/>
<numFmt numFmtId="165" formatCode="[$€-407] #,##0.00;[Red]([$€-407] #,##0.00)"/>
<numFmt numFmtId="166" formatCode="[&gt;=1000]0.0,&quot;k&quot;;0"/></numFmts><cellXfs>"""
STYLES += (
    "".join(f'<xf numFmtId="{number}"/>' for number in (0, 10, 164, 18, 165, 2, 3, 166)) + "</cellXfs></styleSheet>"
)
CELLS = """<c r="A1" s="1"><v>0.1234</v></c><c r="B1" s="2"><v>46348</v></c><c r="C1" s="3"><v>0.75</v></c>
<c r="D1" s="4"><v>-1234.5</v></c><c r="E1" s="5"><v>2.675</v></c><c r="F1" s="6"><v>1234567</v></c>
<c r="G1" s="7"><v>12345</v></c><c r="H1" t="e"><f>1/0</f><v>#DIV/0!</v></c><c r="I1"><f>A1+B1</f></c>
<c r="J1"><v>0.30000000000000004</v></c>
<c r="K1" t="str"><f>HYPERLINK("https://example.net/","more")</f><v>more</v></c>"""
SHOWN = build_zip(
    {name: package.read(name) for package in (zipfile.ZipFile(io.BytesIO(NOTED)),) for name in package.namelist()}
    | {
        "xl/styles.xml": STYLES.encode(),
        "xl/worksheets/sheet1.xml": (
            f'<worksheet xmlns:r="urn:r"><cols><col min="3" max="4" hidden="1"/></cols><sheetData><row r="1">{CELLS}'
            '</row><row r="2" hidden="1"><c r="B2"><v>7</v></c></row></sheetData><mergeCells><mergeCell ref="A1:A3"/>'
            '</mergeCells><hyperlinks><hyperlink ref="A1" r:id="x"/></hyperlinks></worksheet>'
        ).encode(),
    }
)

ODS = open_document(
    "spreadsheet",
    """<office:automatic-styles xmlns:style="urn:s"><style:style style:name="ta1"><style:table-properties
table:display="false"/></style:style></office:automatic-styles>
<table:table table:name="Open"><table:table-column/><table:table-column table:visibility="collapse"
table:number-columns-repeated="2"/><table:table-row><table:table-cell office:value-type="percentage"
office:value="0.1234" table:number-columns-spanned="2"><text:p>12.34%</text:p></table:table-cell>
<table:covered-table-cell/><table:table-cell table:formula="of:=[.A1]+[.B1]"/>
<table:table-cell office:value-type="float" office:value="7"/>
<table:table-cell office:value-type="string"><office:annotation><text:p>Check</text:p></office:annotation><text:p>see
<text:a xmlns:xlink="urn:x" xlink:href="https://example.org/">terms</text:a></text:p><text:p>two</text:p></table:table-cell>
</table:table-row><table:table-row table:visibility="filter"><table:table-cell office:value-type="string"><text:p>gone
</text:p></table:table-cell></table:table-row></table:table><table:table table:name="Secret" table:style-name="ta1">
<table:table-row><table:table-cell><text:p>kept</text:p></table:table-cell></table:table-row></table:table>""",
)

PLANTED = (
    ("ods", ODS, "number as shown, formula and value without a text", "12.34%\t\t=[.A1]+[.B1]\t7\tsee terms two\n"),
    ("ods", ODS, "hidden columns", "[sheet: Open]\n[hidden columns: B-C]\n"),
    ("ods", ODS, "hidden row", "\n[hidden row] gone\n"),
    ("ods", ODS, "target of a link", "[link at E1: https://example.org/]\n"),
    ("ods", ODS, "comment", "[comment at E1: Check]\n"),
    ("ods", ODS, "merged cells", "[merged cells: A1:B1]\n"),
    ("ods", ODS, "hidden sheet", "[sheet: Secret, hidden]\nkept"),
    ("xlsx", SHOWN, "percent", "12.34%\t"),
    ("xlsx", SHOWN, "date as its format says", "\t22.11.2026\t"),
    ("xlsx", SHOWN, "time", "\t6:00 PM\t"),
    ("xlsx", SHOWN, "negative money", "\t(€ 1,234.50)\t"),
    ("xlsx", SHOWN, "rounding", "\t2.68\t"),
    ("xlsx", SHOWN, "thousands", "\t1,234,567\t"),
    ("xlsx", SHOWN, "condition", "\t12.3k\t"),
    ("xlsx", SHOWN, "error", "\t#DIV/0!\t"),
    ("xlsx", SHOWN, "formula without a value", "\t=A1+B1\t"),
    ("xlsx", SHOWN, "number without a format", "\t0.3\tmore\n"),
    ("xlsx", SHOWN, "target of a formula's link", "[link at K1: https://example.net/]\n"),
    ("xlsx", SHOWN, "target of a link", "[link at A1: https://example.org/]\n"),
    ("xlsx", SHOWN, "comment", "[comment at A1: Check]\n"),
    ("xlsx", SHOWN, "hidden row", "\n[hidden row]\t7\n"),
    ("xlsx", SHOWN, "hidden columns", "[sheet: Open]\n[hidden columns: C-D]\n"),
    ("xlsx", SHOWN, "merged cells", "[merged cells: A1:A3]\n"),
    ("xlsx", SHOWN, "hidden sheet", "[sheet: Secret, hidden]\nkept"),
    ("xlsx", NOTED, "target of a link", "7\n[link at A1: https://example.org/]\n"),
    ("xlsx", NOTED, "comment", "[comment at A1: Check]\n"),
    ("xlsx", HIDDEN, "hidden sheet", "[sheet: Open]\nseen\n\n[sheet: Secret, hidden]\nkept"),
    ("rtf", DRAWN, "heading after a header", "[header]\nConfidential\n\n## Beta\n"),
    ("rtf", DRAWN, "target of a link", "See [the terms](https://example.org/)\n"),
    ("rtf", DRAWN, "exponent, without what is hidden or deleted", "10^3 m ~~old~~\n"),
    ("rtf", DRAWN, "alternative text", "[image: Revenue rises] seen\n"),
    ("rtf", DRAWN, "words of a shape, once", "seen\nBox\nclaim"),
    ("rtf", DRAWN, "comment with its author", "claim[comment: Ann: Why]\n"),
    ("rtf", DRAWN, "table in a table", "inner\t\t2"),
    ("rtf", STARRED, "footnote after a star", "Word[footnote: A note.] after"),
    ("docx", DOCX, "target of a link", "[the terms](https://example.org/)"),
    ("docx", DOCX, "alternative text", "\n[image: Revenue rises] seen"),
    ("docx", DOCX, "fraction", "(a+1)/(b)"),
    ("docx", DOCX, "numbered list with bullets inside", "1. one\n  - deep\n2. two\n"),
    ("docx", DOCX, "place of a footnote", "noted[^2]\n"),
    ("docx", DOCX, "footnote", "[^2] A note\n"),
    ("docx", DOCX, "author of a comment", "Ann: Why"),
    ("docx", STYLED, "headings numbered by their style", "# I. Scope\n# II. Terms\n## 2.1 Parties\n"),
    ("docx", STYLED, "bullets by a style", "\n- buyer\n"),
    ("docx", STYLED, "letters, and a list that begins elsewhere", "z) after y\naa) after z\nb) elsewhere\n"),
    ("docx", STYLED, "Chinese numbers", "第一条 rule 1\n"),
    ("docx", STYLED, "Chinese numbers over ten", "第十条 rule 10\n第十一条 rule 11\n"),
    ("docx", STYLED, "link of a field", "[field](https://example.org/f)\n"),
    ("docx", STYLED, "field in another's instruction", "\nouter\n"),
    ("docx", STYLED, "exponent outside a formula", "10^6\n"),
    ("docx", STYLED, "only what is shown", "10^6\nleft\n"),
    ("docx", STYLED, "struck out words, signs of a font", "for ~~old~~ new☑α\n"),
    ("docx", STYLED, "box that is ticked", "[x] agreed\n"),
    ("docx", STYLED, "sum and delimiters", "∑_(i)[x]\n"),
    ("docx", STYLED, "place of a comment", "claim[comment 1]\n"),
    ("docx", STYLED, "cell over two columns", "wide\t\tend\n"),
    ("docx", STYLED, "chart at its place", "[chart]\nSales\nNorth\tQ1\t12"),
    ("pptx", PPTX, "alternative text", "[image: Revenue rises]\n"),
    ("pptx", PPTX, "target of a link", "[terms](https://example.org/)\n"),
    ("pptx", PPTX, "data of a chart", "[chart on slide 1]\nSales\nNorth\tQ1\t12\nNorth\tQ2\t13.5"),
    (
        "pptx",
        COMMENTED,
        "title, address of a shape, levels",
        "# Plan\n[link](https://example.org/)\nouter\n  - inner\n",
    ),
    ("pptx", COMMENTED, "numbered points", "a) first\nb) second\n"),
    ("pptx", COMMENTED, "exponent, struck out word", "10^3\n~~old~~\n"),
    ("pptx", COMMENTED, "comment", "[comments on slide 1]\nAnn: Which year?\n"),
    ("pptx", COMMENTED, "comment with an answer", "Bo: Since when?\n  Cy: 2031"),
    ("pptx", PPTX, "categories in groups", "Italy Rome\t1\nItaly Bari\t2\nFrance Nice\t3"),
    ("odt", WRITTEN, "numbered headings", "# 1 Alpha\n## 1.1 Beta\n"),
    ("odt", WRITTEN, "numbered lists", "1. one\n2. two\n  a) deep\nstill two\n1. again\n2. on\n"),
    ("odt", WRITTEN, "formula", "is (p)/(q)+√(u) here\n"),
    ("odt", WRITTEN, "comment with its author", "claim[comment: Ann: Why ]\n"),
    ("odt", WRITTEN, "exponent, struck out word", "10^6 m ~~old~~\n"),
    ("odt", WRITTEN, "repeated empty cells", "\t\tthird"),
    ("odt", WRITTEN, "several spaces", "a   b\n"),
    ("odt", WRITTEN, "header of several kinds of pages, once", "[header]\nConfidential\n\n# 1"),
    ("odt", WRITTEN, "footer", "[footer]\nImprint"),
    ("odp", SLIDES, "titles and notes", "[slide 1]\n# Plan\nWords\n\n[slide 2]\nNext\n[notes of slide 2]\nSmile"),
    ("odt", ODT, "heading", "## Beta\n"),
    ("odt", ODT, "target of a link and footnote", "See [terms](https://example.org/)[footnote: A note ] after\n"),
    ("odt", ODT, "alternative text", "[image: Revenue rises]\n"),
    ("odt", ODT, "nested list", "- one\n  - deep"),
    ("epub", BOOK, "title and author", "The Book\nAnn Author\n\n"),
    ("epub", BOOK, "order of the spine, any extension", "[chapter 1]\nfirst\nu^(2)\n\n[chapter 2]\nlast"),
    ("rtf", RTF, "footnote", "[footnote: A note.\n] after"),
    ("rtf", RTF, "text that is there in Unicode, too", "after你好\n"),
    ("rtf", RTF, "row of a table with paragraphs in a cell", "\nAnn B\t12\nEnd"),
)
"""Each row has a reader, a file's content, the planted fact, and the text in which the fact is found."""


@pytest.mark.parametrize(("reader", "data", "fact", "expected"), PLANTED, ids=[f"{r[0]}: {r[2]}" for r in PLANTED])
def test_text_planted_in_an_office_document_is_extracted(reader: str, data: bytes, fact: str, expected: str) -> None:
    _, text = answer(io.BytesIO(data), {"reader": reader, "max_chars": 100_000})
    assert expected in text.decode()


@pytest.mark.parametrize(
    ("unit", "end"),
    [
        ('<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>x</w:instrText></w:r>', ""),
        ('<w:r><w:fldChar w:fldCharType="separate"/><w:fldChar w:fldCharType="end"/></w:r>', ""),
        ('<w:fldSimple w:instr="HYPERLINK x"><w:r><w:t>y</w:t></w:r>', "</w:fldSimple>"),
        ("<m:d><m:e><m:nary><m:naryPr/>", "</m:nary></m:e></m:d>"),
        ('<w:del><w:hyperlink r:id="x">', "</w:hyperlink></w:del>"),
        ('<w:tc><w:tcPr><w:gridSpan w:val="999999"/></w:tcPr>', "</w:tc>"),
        (word_list_item("x", 8, 6), ""),
    ],
)
def test_unclosed_fields_and_nested_formulas_do_not_hide_text_in_a_word_document(unit: str, end: str) -> None:
    body = f"<w:p>{unit * 2_000}{end * 2_000}</w:p><w:p><w:r><w:t>Words</w:t></w:r></w:p>"
    data = build_zip(
        {"word/document.xml": word_part("document", body), "word/numbering.xml": word_part("numbering", SHARED)}
    )
    assert answer(io.BytesIO(data), {"reader": "docx", "max_chars": 10**6})[1].endswith(b"Words")


@pytest.mark.parametrize(
    "units",
    [
        ("<text:list><text:list-item>", "</text:list-item></text:list>"),
        ("<office:annotation><dc:creator>", "</dc:creator></office:annotation>"),
        ("<mfrac><msqrt>", "</msqrt></mfrac>"),
        ('<draw:object xlink:href="./Own"/><text:s text:c="999999"/>', ""),
        (
            "<text:list-style><text:list-level-style-number text:level='9' text:display-levels='9'/>",
            "</text:list-style>",
        ),
    ],
)
def test_recursive_lists_and_objects_in_opendocument_do_not_loop_forever(units: tuple[str, str]) -> None:
    content = f"<text:p>Words</text:p>{units[0] * 2_000}{units[1] * 2_000}"
    data = build_opendocument(content=content, Own__content=content)
    assert b"Words" in answer(io.BytesIO(data), {"reader": "odt", "max_chars": 10**6})[1]


@pytest.mark.parametrize(
    "unit",
    [
        r"{\field{\*\fldinst HYPERLINK x}{\fldrslt ",
        r"{\field{\*\fldinst {",
        r"{\footnote ",
        r"{\*\annotation{\*\atnauthor x}",
        r"{\sp{\sn wzDescription}{\sv x}",
        r"{\upr{\*\ud ",
        r"\outlinelevel1 \super x\nosupersub\par",
    ],
)
def test_text_before_unclosed_rtf_groups_is_extracted(unit: str) -> None:
    data = rb"{\rtf1 Words\par " + unit.encode() * 2_500
    assert answer(io.BytesIO(data), {"reader": "rtf", "max_chars": 10**6})[1].startswith(b"Words")
