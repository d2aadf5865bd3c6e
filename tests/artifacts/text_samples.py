"""Small text samples: source code, settings, captions, scientific data and more languages."""

from __future__ import annotations

# Each row has a name, a type and a line of text. All files are in UTF-8.
SOURCES = """
main.java       | text/x-java              | class Main { public static void main(String[] a) {} }
main.c          | text/x-c                 | int main(void) { return 0; }
main.cpp        | text/x-c++               | #include <iostream>
main.cs         | text/x-csharp            | class Program { static void Main() {} }
main.go         | text/x-go                | package main
main.rb         | text/x-ruby              | puts 'hello'
main.pl         | text/x-perl              | print "hello";
index.php       | text/x-php               | <?php echo 'hello';
main.kt         | text/x-kotlin            | fun main() {}
main.swift      | text/x-swift             | print("hello")
main.scala      | text/x-scala             | object Main extends App
main.lua        | text/x-lua               | local a = 1
plot.r          | text/x-r                 | x <- c(1, 2)
main.jl         | text/x-julia             | println("hello")
main.zig        | text/x-zig               | pub fn main() void {}
main.nim        | text/x-nim               | echo "hello"
main.f90        | text/x-fortran           | program main
main.pas        | text/x-pascal            | begin writeln('hello'); end.
build.gradle    | text/x-groovy            | plugins { id 'java' }
main.ml         | text/x-ocaml             | let () = print_endline "hello"
main.fs         | text/x-fsharp            | printfn "hello"
main.vb         | text/x-vb                | Module Main
main.el         | text/x-lisp              | (message "hello")
CMakeLists.txt  | text/x-cmake             | project(main)
main.v          | text/x-verilog           | module main; endmodule
main.vhdl       | text/x-vhdl              | entity main is end;
main.sol        | text/x-solidity          | contract Main {}
main.mm         | text/x-objectivec        | @interface Main : NSObject
main.cu         | text/x-cuda              | __global__ void add() {}
main.awk        | text/x-awk               | { print $1 }
main.tcl        | text/x-tcl               | puts hello
main.d          | text/x-d                 | import std.stdio;
main.cr         | text/x-crystal           | puts "hello"
default.nix     | text/x-nix               | { pkgs }: pkgs.hello
light.frag      | text/x-glsl              | void main() { gl_FragColor = vec4(1); }
main.dart       | text/x-dart              | void main() {}
main.hs         | text/x-haskell           | main = putStrLn "hello"
main.exs        | text/x-elixir            | IO.puts "hello"
main.erl        | text/x-erlang            | -module(main).
main.clj        | text/x-clojure           | (println "hello")
main.s          | text/x-asm               | mov eax, 1
run.ps1         | text/x-bat               | Write-Host hello
tool.tsx        | application/typescript   | export const A = () => <p/>
tool.jsx        | text/jsx                 | export default () => <p/>
page.vue        | text/x-vue               | <template><p/></template>
mail.erb        | text/x-template          | <p><%= name %></p>
page.svelte     | text/x-svelte            | <script>let a = 1</script>
page.hbs        | text/x-handlebars        | {{#if a}}b{{/if}}
page.j2         | text/x-jinja             | {% if a %}b{% endif %}
style.css       | text/css                 | a { color: red }
style.scss      | text/x-scss              | $a: red;
style.less      | text/x-less              | @a: red;
query.graphql   | application/graphql      | query { a }
rows.proto      | text/x-protobuf          | syntax = "proto3";
main.tf         | text/x-terraform         | resource "a" "b" {}
Dockerfile      | text/x-dockerfile        | FROM debian
Makefile        | text/x-makefile          | all: build
Jenkinsfile     | text/x-groovy            | pipeline {}
.editorconfig   | text/plain               | root = true
.htaccess       | text/plain               | Deny from all
settings.json5  | application/json5        | {a: 1, // one
trace.har       | application/json         | {"log": {"version": "1.2"}}
data.jsonld     | application/ld+json      | {"@context": "https://schema.org"}
app.webmanifest | application/manifest+json | {"name": "App"}
place.geojson   | application/geo+json     | {"type": "Point", "coordinates": [1, 2]}
report.tex      | text/x-tex               | \\documentclass{article}
report.rst      | text/x-rst               | Title
notes.org       | text/x-org               | * Title
notes.adoc      | text/x-asciidoc          | = Title
notes.typ       | text/x-typst             | = Title <a>
books.bib       | text/x-bibtex            | @book{a, title = {T}}
books.ris       | application/x-research-info-systems | TY  - BOOK
change.patch    | text/x-diff              | --- a/x
words.po        | text/x-gettext-translation | msgid "a"
inbox.mbox      | application/mbox         | From a@example.com Sun Nov 22 04:00:00 2026
facts.ttl       | text/turtle              | @prefix a: <urn:a> .
facts.rdf       | application/rdf+xml      | <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>
sum.mml         | application/mathml+xml   | <math xmlns="http://www.w3.org/1998/Math/MathML"/>
list.m3u8       | application/vnd.apple.mpegurl | #EXTM3U
list.xspf       | application/xspf+xml     | <playlist xmlns="http://xspf.org/ns/0/"/>
captions.ass    | text/x-ssa               | [Script Info]
captions.smi    | text/x-sami              | <SAMI><BODY></BODY></SAMI>
song.lrc        | text/plain               | [00:01.00]hello
genes.fasta     | text/x-fasta             | >seq1
part.gcode      | text/x-gcode             | G28 ; home
feeds.opml      | application/xml          | <opml version="2.0"/>
manual.mif | application/vnd.mif | <MIFFile 9.00> # made here
"""

# Each row has a name, an encoding and a text.
LANGUAGES: tuple[tuple[str, str, str], ...] = (
    ("pl", "iso8859-2", "Zażółć gęślą jaźń, a potem idź dalej przez las.\n"),
    ("hu", "cp1250", "Árvíztűrő tükörfúrógép és őszi idő.\n"),
    ("uk", "koi8-u", "Щастя їй дісталося нелегко, але є ще їжа і ґанок.\n"),
    ("bg", "cp1251", "Жълтата дюля беше щастлива, че пухът цъфна.\n"),
    ("sr", "cp1251", "Љубазни фењерџија чађавог лица хоће да ми покаже штос.\n"),
    ("de", "cp1252", "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.\n"),
    ("es", "cp1252", "El pingüino bebió café y comió piñas en la mañana.\n"),
    ("pt", "cp1252", "A rápida raposa não voltará à praça até amanhã.\n"),
    ("lv", "cp1257", "Glāžšķūņa rūķīši dzērumā čiepj Baha koncertflīģeļu vākus.\n"),
    ("hk", "big5hkscs", "這是香港的文字，佢哋嘅書喺度。\n"),
    ("ja", "shift_jis", "吾輩は猫である。名前はまだ無い。どこで生れたか見当がつかぬ。\n"),
    ("zh", "utf-16-be", "这是一段中文，写在没有标记的编码里。\n"),
    ("ar", "utf-8-sig", "مرحبا بالعالم\n"),
    ("hi", "utf-8", "नमस्ते दुनिया\n"),
    ("vi", "utf-8", "Tiếng Việt có dấu.\n"),
    ("emoji", "utf-8", "Done 🎉 ✅\n"),
)


def rows() -> list[tuple[str, bytes, str, str]]:
    lines = [[cell.strip() for cell in line.split("|", 2)] for line in SOURCES.strip().splitlines()]
    sources = [(name, f"{text}\n".encode(), mime_type, "utf-8") for name, mime_type, text in lines]
    languages = [
        (f"{name} in {encoding}.txt", text.encode(encoding), "text/plain", encoding)
        for name, encoding, text in LANGUAGES
    ]
    return [*sources, *languages]
