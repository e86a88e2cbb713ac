"""The formats that can be read: media types, file extensions, parser and limits of each.

To add a media type to a format that is here, add it to its `media_types`. To add a format, write a parser in a module
of this package, a function from `str` or `bytes` to `ParsedDocument`, and add one `Format` below; nothing else lists
formats. `parse`, the HTTP API, `GET /v1/formats`, `thalweg load` and error messages all read this registry.

The limits refuse a document before it costs time or memory. The sandboxed child process (`indexer.sandbox`) enforces
general limits on everything else.
"""

import re
from dataclasses import dataclass
from typing import Literal

from indexer.errors import UnparsableDocument
from schemas.graph_documents import EDGE_TYPE, NODE_TYPE

MIB = 1024 * 1024

MAX_MARKDOWN_DEPTH = 100
MAX_HTML_DEPTH = 256  # deeper start tags are dropped, their text is kept
MAX_JSON_DEPTH = 100
MAX_XML_DEPTH = 256  # libxml2's own limit
MAX_XML_TAGS = 1_000_000  # start and end tags; a book of 10 MB has some 300,000

MAX_TABLE_ROWS = 20_000  # each is a section with a chunk of its own
MAX_TABLE_COLUMNS = 1_000
MAX_TABLE_ROW_CHARACTERS = 1_000_000
MAX_TABLE_FIELD_CHARACTERS = 131_072  # the csv module's own limit

MAX_MAIL_DEPTH = 3  # of messages in messages

MAX_PDF_PAGES = 2_000
MAX_PDF_CHARACTERS = 10_000_000
MAX_PDF_CPU_SECONDS = 6  # for all pages; a printed page takes 1 to 5 ms

MAX_ARCHIVE_MEMBERS = 5_000
MAX_UNPACKED_BYTES = 256 * MIB
MAX_UNPACKED_XML_BYTES = 12 * MIB
MAX_SHEET_CELLS = 5_000_000  # between a sheet's first and last, empty ones counted
MAX_DOCX_ELEMENTS = 100_000  # layout not counted; mammoth reads some 15,000 a CPU second

Limit = Literal[
    "depth", "tags", "elements", "pages", "characters", "cpu_seconds", "members", "unpacked_bytes",
    "unpacked_xml_bytes", "cells", "rows", "columns", "row_characters", "field_characters",
]  # fmt: skip


@dataclass(frozen=True)
class Format:
    """A format that can be read.

    `media_types`: the preferred one first. `extensions`: of file names, with their dot. `parser`: `module:function` in
    this package, imported with its library when the first document of the format arrives. `takes`: what the parser is
    given, `text` with normalised line ends and control characters, `characters` decoded but otherwise as sent, or
    `bytes`. `signature`: the first bytes of a binary format. `declares_charset`: whether the content itself may name
    its character set. `may_lack_text`: whether there may be nothing to read in it. `limits`: inclusive upper bounds; a
    limit on the bytes of any document applies as well (`LimitSettings`).
    """

    name: str
    media_types: tuple[str, ...]
    extensions: tuple[str, ...]
    parser: str
    takes: Literal["text", "characters", "bytes"] = "text"
    signature: bytes | None = None
    declares_charset: bool = False
    may_lack_text: bool = False
    limits: tuple[tuple[Limit, int], ...] = ()

    @property
    def media_type(self) -> str:
        return self.media_types[0]


_TABLE_LIMITS: tuple[tuple[Limit, int], ...] = (
    ("rows", MAX_TABLE_ROWS),
    ("columns", MAX_TABLE_COLUMNS),
    ("row_characters", MAX_TABLE_ROW_CHARACTERS),
    ("field_characters", MAX_TABLE_FIELD_CHARACTERS),
)
_OFFICE = "application/vnd.openxmlformats-officedocument"


def _archive(name: str, media_type: str, *limits: tuple[Limit, int]) -> Format:
    return Format(
        name,
        (media_type,),
        (f".{name.lower()}",),
        f"office.{name.lower()}:parse",
        takes="bytes",
        signature=b"PK\x03\x04",
        limits=(
            *limits,
            ("members", MAX_ARCHIVE_MEMBERS),
            ("unpacked_bytes", MAX_UNPACKED_BYTES),
            ("unpacked_xml_bytes", MAX_UNPACKED_XML_BYTES),
        ),
    )


_DOCUMENTS = (
    Format(
        "Markdown",
        ("text/markdown", "text/x-markdown"),
        (".md", ".markdown", ".mdown"),
        "markdown:parse",
        limits=(("depth", MAX_MARKDOWN_DEPTH),),
    ),
    Format(
        "MDX",
        ("text/mdx", "text/x-mdx"),
        (".mdx",),
        "markdown:parse_mdx",
        limits=(("depth", MAX_MARKDOWN_DEPTH),),
    ),
    Format(
        "HTML",
        ("text/html", "application/xhtml+xml"),
        (".html", ".htm", ".xhtml"),
        "html:parse",
        declares_charset=True,
        limits=(("depth", MAX_HTML_DEPTH),),
    ),
    Format("plain text", ("text/plain",), (".txt", ".text", ".log"), "text:parse"),
    Format("AsciiDoc", ("text/asciidoc", "text/x-asciidoc"), (".adoc", ".asciidoc"), "asciidoc:parse"),
    Format("Org", ("text/org", "text/x-org"), (".org",), "org:parse"),
    Format("LaTeX", ("text/x-tex", "application/x-tex", "application/x-latex"), (".tex", ".latex"), "latex:parse"),
    Format("subtitles", ("text/vtt", "application/x-subrip"), (".vtt", ".srt"), "subtitles:parse"),
    Format("notebook", ("application/x-ipynb+json",), (".ipynb",), "notebook:parse", takes="characters"),
    Format(
        "mail",
        ("message/rfc822",),
        (".eml",),
        "mail:parse",
        takes="bytes",
        limits=(("depth", MAX_MAIL_DEPTH),),
    ),
    Format(
        "mailbox",
        ("application/mbox",),
        (".mbox",),
        "mail:parse_mailbox",
        takes="bytes",
        limits=(("members", MAX_ARCHIVE_MEMBERS), ("depth", MAX_MAIL_DEPTH)),
    ),
    Format(
        "reStructuredText",
        ("text/x-rst", "text/restructuredtext", "text/prs.fallenstein.rst"),
        (".rst", ".rest"),
        "restructuredtext:parse",
    ),
    Format(
        "JSON",
        ("application/json", "text/json", "application/ld+json", "application/feed+json", "application/geo+json"),
        (".json", ".jsonld"),
        "json:parse",
        takes="characters",
        limits=(("depth", MAX_JSON_DEPTH),),
    ),
    Format(
        "XML",
        ("application/xml", "text/xml", "application/rss+xml", "application/atom+xml", "application/docbook+xml",
         "application/tei+xml", "application/jats+xml"),
        (".xml", ".rss", ".atom", ".dbk", ".tei"),
        "xml:parse",
        declares_charset=True,
        limits=(("depth", MAX_XML_DEPTH), ("tags", MAX_XML_TAGS)),
    ),
    Format(
        "CSV",
        ("text/csv", "application/csv", "text/x-csv"),
        (".csv",),
        "csv:parse_csv",
        takes="characters",
        limits=_TABLE_LIMITS,
    ),
    Format(
        "TSV",
        ("text/tab-separated-values", "text/tsv"),
        (".tsv", ".tab"),
        "csv:parse_tsv",
        takes="characters",
        limits=_TABLE_LIMITS,
    ),
    Format(
        "PDF",
        ("application/pdf", "application/x-pdf"),
        (".pdf",),
        "pdf.document:parse",
        takes="bytes",
        signature=b"%PDF-",
        limits=(("pages", MAX_PDF_PAGES), ("characters", MAX_PDF_CHARACTERS), ("cpu_seconds", MAX_PDF_CPU_SECONDS)),
    ),
    _archive("DOCX", f"{_OFFICE}.wordprocessingml.document", ("depth", MAX_XML_DEPTH), ("elements", MAX_DOCX_ELEMENTS)),
    _archive("PPTX", f"{_OFFICE}.presentationml.presentation", ("depth", MAX_XML_DEPTH)),
    _archive("XLSX", f"{_OFFICE}.spreadsheetml.sheet", ("cells", MAX_SHEET_CELLS), *_TABLE_LIMITS),
    _archive("EPUB", "application/epub+zip", ("depth", MAX_HTML_DEPTH)),
    Format("node", (NODE_TYPE,), (), "hand_made_nodes:parse_node", takes="bytes", may_lack_text=True),
    Format("edge", (EDGE_TYPE,), (), "hand_made_nodes:parse_edge", takes="bytes", may_lack_text=True),
)  # fmt: skip


def _source(language: str, media_types: str, extensions: str) -> Format:
    return Format(language, tuple(media_types.split()), tuple(extensions.split()), "text:parse_source_code")


# Media types as listed by Linguist and shared-mime-info; files of an extension get the first.
_LANGUAGES = (
    _source("Python", "text/x-python application/x-python", ".py .pyi"),
    _source("JavaScript", "text/javascript application/javascript text/x-javascript", ".js .mjs .cjs .jsx"),
    _source("TypeScript", "text/x-typescript application/typescript", ".ts .tsx"),
    _source("Java", "text/x-java text/x-java-source", ".java"),
    _source("Kotlin", "text/x-kotlin", ".kt .kts"),
    _source("Scala", "text/x-scala", ".scala"),
    _source("C", "text/x-c text/x-csrc text/x-chdr", ".c .h"),
    _source("C++", "text/x-c++ text/x-c++src text/x-c++hdr", ".cpp .cc .cxx .hpp .hh"),
    _source("C#", "text/x-csharp", ".cs"),
    _source("Go", "text/x-go", ".go"),
    _source("Rust", "text/x-rust text/rust", ".rs"),
    _source("Swift", "text/x-swift", ".swift"),
    _source("Ruby", "text/x-ruby application/x-ruby", ".rb"),
    _source("PHP", "text/x-php application/x-httpd-php", ".php"),
    _source("Perl", "text/x-perl", ".pl .pm"),
    _source("Lua", "text/x-lua", ".lua"),
    _source("R", "text/x-r text/x-rsrc", ".r"),
    _source("Julia", "text/x-julia", ".jl"),
    _source("Haskell", "text/x-haskell", ".hs"),
    _source("Erlang", "text/x-erlang", ".erl"),
    _source("Elixir", "text/x-elixir", ".ex .exs"),
    _source("Clojure", "text/x-clojure", ".clj"),
    _source("shell", "text/x-shellscript text/x-sh application/x-sh", ".sh .bash .zsh"),
    _source("SQL", "text/x-sql application/sql", ".sql"),
    _source("CSS", "text/css", ".css"),
    _source("TOML", "text/x-toml application/toml", ".toml"),
    _source("YAML", "text/x-yaml application/yaml application/x-yaml", ".yaml .yml"),
)
_FORMATS = _DOCUMENTS + _LANGUAGES
_BY_MEDIA_TYPE = {media_type: known for known in _FORMATS for media_type in known.media_types}
_BY_EXTENSION = {extension: known for known in _FORMATS for extension in known.extensions}
_PLAIN_NAMES = (
    "authors", "changelog", "changes", "contributing", "contributors", "copying", "copyright", "faq", "history",
    "install", "licence", "license", "maintainers", "news", "notice", "readme", "thanks", "todo",
)  # fmt: skip


def formats() -> list[Format]:
    """Every format `parse` reads: documents first, then source code by language."""
    return list(_FORMATS)


def format_of(media_type: str) -> Format | None:
    """The format of a media type in lower case and without parameters; None if it cannot be read."""
    return _BY_MEDIA_TYPE.get(media_type)


def media_type_of(file_name: str) -> str | None:
    """The media type by the extension of a file name, or by a name that projects give a text; None for an unknown
    one."""
    dot = file_name.rfind(".")
    if dot < 0:
        return "text/plain" if file_name[file_name.rfind("/") + 1 :].lower() in _PLAIN_NAMES else None
    known = _BY_EXTENSION.get(file_name[dot:].lower())
    return known.media_type if known else None


# First bytes → kind; from the specifications listed at https://www.iana.org/assignments/media-types.
_SIGNATURES = (
    (b"%PDF-", "PDF"),
    (b"PK\x03\x04", "a ZIP archive (such as DOCX, XLSX or EPUB)"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\x1f\x8b\x08", "gzip-compressed data"),
    (b"BZh91AY&SY", "bzip2-compressed data"),
    (b"\xfd7zXZ\x00", "xz-compressed data"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a file of old Microsoft Office (such as DOC or XLS)"),
    (b"{\\rtf1", "RTF"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\x00", "a SQLite database"),
)
_SEND_AS = {
    "PDF": "application/pdf",
    "a ZIP archive (such as DOCX, XLSX or EPUB)": "its own media type",
    "HTML": "text/html",
    "XML": "application/xml",
}
_PDF_HEADER_BYTES = 1024  # readers accept the header anywhere in these (PDF 1.7, appendix H, note 13)
_HTML = re.compile(rb"\s*(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_XML = re.compile(rb"\s*<\?xml\b")
_HEAD_BYTES = 2048


def check_signature(content: bytes, declared: Format) -> None:
    """Raises UnparsableDocument (`media_type_mismatch`) when the first bytes are those of another format.

    Text formats are not distinguished: HTML, JSON or XML may be meant as plain text or source code. Libraries for this
    (puremagic, filetype) also know signatures of two letters, such as `BM`, with which ordinary text may begin.
    """
    head = content[:_HEAD_BYTES]
    binary = next((kind for signature, kind in _SIGNATURES if head.startswith(signature)), None)
    if declared.signature is None:
        if binary is not None:
            raise _mismatch(binary, declared)
    elif not head.startswith(declared.signature) and not (
        declared.name == "PDF" and declared.signature in head[:_PDF_HEADER_BYTES]
    ):
        markup = "HTML" if _HTML.match(head) else "XML" if _XML.match(head) else None
        raise _mismatch(binary or markup, declared)


def _mismatch(kind: str | None, declared: Format) -> UnparsableDocument:
    if kind is None:
        message = f"The content is not {declared.name}, as its media type says. Correct its media type."
    else:
        advice = f"Send it as {_SEND_AS[kind]}." if kind in _SEND_AS else "That cannot be read."
        message = f"The content is {kind}, not {declared.name} as its media type says. {advice}"
    return UnparsableDocument("media_type_mismatch", message)
