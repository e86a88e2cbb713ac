"""The formats that can be read, with their media types, file extensions and limits: the one place that lists them."""

from dataclasses import dataclass
from typing import Literal

from indexer.parsing.limits import (
    MAX_ARCHIVE_MEMBERS,
    MAX_DOCX_ELEMENTS,
    MAX_HTML_DEPTH,
    MAX_JSON_DEPTH,
    MAX_MARKDOWN_DEPTH,
    MAX_PDF_CHARACTERS,
    MAX_PDF_CPU_SECONDS,
    MAX_PDF_PAGES,
    MAX_TABLE_COLUMNS,
    MAX_TABLE_FIELD_CHARACTERS,
    MAX_TABLE_ROW_CHARACTERS,
    MAX_TABLE_ROWS,
    MAX_UNPACKED_BYTES,
    MAX_UNPACKED_XML_BYTES,
    MAX_XML_DEPTH,
    MAX_XML_TAGS,
)

Limit = Literal[
    "depth", "tags", "elements", "pages", "characters", "cpu_seconds", "members", "unpacked_bytes",
    "unpacked_xml_bytes", "rows", "columns", "row_characters", "field_characters",
]  # fmt: skip

_TABLE_LIMITS: tuple[tuple[Limit, int], ...] = (
    ("rows", MAX_TABLE_ROWS),
    ("columns", MAX_TABLE_COLUMNS),
    ("row_characters", MAX_TABLE_ROW_CHARACTERS),
    ("field_characters", MAX_TABLE_FIELD_CHARACTERS),
)


@dataclass(frozen=True)
class Format:
    """A format that can be read: its media type first in `media_types`, file extensions with their dot.

    `takes` is what its module's `parse` is given: `text` with line ends and control characters made regular,
    `characters` as they were sent, or `bytes`. `limits` are upper bounds, inclusive: levels of nesting, tags, elements
    that carry text or structure, pages, characters of text, CPU seconds, members of an archive, bytes unpacked; rows
    and columns of a table, characters of one of its rows and of one field. A limit on the bytes of any document holds
    besides (`LimitSettings`).
    """

    name: str
    media_types: tuple[str, ...]
    extensions: tuple[str, ...]
    module: str
    takes: Literal["text", "characters", "bytes"] = "text"
    limits: tuple[tuple[Limit, int], ...] = ()

    @property
    def media_type(self) -> str:
        return self.media_types[0]


def formats() -> list[Format]:
    """Every format `parse` reads: first those of documents, then the languages of source code."""
    return list(_FORMATS)


def format_of(media_type: str) -> Format | None:
    """The format of a media type, lower case and without parameters; None for one that cannot be read."""
    return _BY_MEDIA_TYPE.get(media_type)


def media_type_of(path_name: str) -> str | None:
    """The media type that a file's name tells by its extension; None for an extension that is unknown."""
    dot = path_name.rfind(".")
    known = _BY_EXTENSION.get(path_name[dot:].lower()) if dot >= 0 else None
    return known.media_type if known else None


def readable() -> str:
    """The media types to send instead of an unknown one, for people."""
    return ", ".join(one.media_type for one in _DOCUMENTS) + ", or source code such as text/x-python"


_DOCUMENTS = (
    Format(
        "Markdown",
        ("text/markdown", "text/x-markdown"),
        (".md", ".markdown", ".mdown"),
        "indexer.parsing.markdown",
        limits=(("depth", MAX_MARKDOWN_DEPTH),),
    ),
    Format(
        "HTML",
        ("text/html", "application/xhtml+xml"),
        (".html", ".htm", ".xhtml"),
        "indexer.parsing.html",
        limits=(("depth", MAX_HTML_DEPTH),),
    ),
    Format("plain text", ("text/plain",), (".txt", ".text"), "indexer.parsing.text"),
    Format(
        "reStructuredText",
        ("text/x-rst", "text/restructuredtext", "text/prs.fallenstein.rst"),
        (".rst", ".rest"),
        "indexer.parsing.restructuredtext",
    ),
    Format(
        "JSON",
        ("application/json", "text/json", "application/ld+json", "application/feed+json", "application/geo+json"),
        (".json", ".jsonld"),
        "indexer.parsing.json",
        takes="characters",
        limits=(("depth", MAX_JSON_DEPTH),),
    ),
    Format(
        "XML",
        ("application/xml", "text/xml", "application/rss+xml", "application/atom+xml", "application/docbook+xml",
         "application/tei+xml", "application/jats+xml"),
        (".xml", ".rss", ".atom", ".dbk", ".tei"),
        "indexer.parsing.xml",
        limits=(("depth", MAX_XML_DEPTH), ("tags", MAX_XML_TAGS)),
    ),
    Format(
        "CSV",
        ("text/csv", "application/csv", "text/x-csv"),
        (".csv",),
        "indexer.parsing.comma_separated",
        takes="characters",
        limits=_TABLE_LIMITS,
    ),
    Format(
        "TSV",
        ("text/tab-separated-values", "text/tsv"),
        (".tsv", ".tab"),
        "indexer.parsing.tab_separated",
        takes="characters",
        limits=_TABLE_LIMITS,
    ),
    Format(
        "PDF",
        ("application/pdf", "application/x-pdf"),
        (".pdf",),
        "indexer.parsing.pdf",
        takes="bytes",
        limits=(("pages", MAX_PDF_PAGES), ("characters", MAX_PDF_CHARACTERS), ("cpu_seconds", MAX_PDF_CPU_SECONDS)),
    ),
    Format(
        "DOCX",
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document",),
        (".docx",),
        "indexer.parsing.docx",
        takes="bytes",
        limits=(
            ("depth", MAX_XML_DEPTH),
            ("elements", MAX_DOCX_ELEMENTS),
            ("members", MAX_ARCHIVE_MEMBERS),
            ("unpacked_bytes", MAX_UNPACKED_BYTES),
            ("unpacked_xml_bytes", MAX_UNPACKED_XML_BYTES),
        ),
    ),
)  # fmt: skip


def _source(language: str, media_types: str, extensions: str) -> Format:
    return Format(language, tuple(media_types.split()), tuple(extensions.split()), "indexer.parsing.source_code")


# Media types as in Linguist's and shared-mime-info's lists; the first is the one a file of that extension gets.
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
