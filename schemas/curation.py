"""What a record of `curation.v1` may hold about a collection, decoded once, at the edge.

The key is `<collection>/settings/<setting>`; a null value takes the setting back. `*/generation/<name>` is an order to
build a generation, to switch to it or to drop it; `*/replay/<id>` and the like are orders about what is stored
(`schemas.orders`), `<collection>/merge/<id>` and the like edits of the graph (`schemas.graph_edits`). Keys of other
kinds are not read.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from schemas.choices import ChunkingMethod, ExtractorName
from schemas.errors import MalformedEvent
from schemas.generations import GENERATION, GENERATION_NAME, GenerationEvent, GenerationOrder
from schemas.graph_edits import (
    EDGE,
    EDITS,
    NODE,
    DecisionEdit,
    EditKind,
    GraphChoice,
    GraphEdit,
    GraphSettingsEvent,
    decision_id,
    is_id_of,
    read_model,
)
from schemas.ids import DocumentKey
from schemas.numbers import whole_numbers
from schemas.orders import ORDERS, OrderEvent, decode_order

SETTINGS = "settings"
CHUNKING = "chunking"
LINKING = "linking"
EXTRACTION = "extraction"
GRAPH = "graph"

Language = Literal[
    "auto", "am", "ar", "az", "be", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "es", "et", "eu", "fa", "fi", "fr",
    "gl", "gu", "he", "hi", "hr", "hu", "hy", "id", "is", "it", "ja", "ka", "kk", "kn", "ko", "lo", "lt", "lv", "mk",
    "ml", "mr", "ms", "my", "ne", "nl", "no", "pa", "pl", "pt", "ro", "ru", "si", "sk", "sl", "sq", "sr", "sv", "ta",
    "te", "th", "tr", "uk", "ur", "vi", "zh",
]  # fmt: skip

DEFAULTS = "What applies where nothing is chosen."
DOCUMENTS = "Live documents of the collection; 0 where it has none yet, null while the stores are being opened."


class LinkingChoice(BaseModel):
    """Weights and thresholds of the edges between the chunks of a document. What is left out, or null, is the default.

    A cosine is that of two chunks' vectors: 1 where they mean the same, about 0 where they have nothing in common.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    next_chunk: float | None = Field(
        None, gt=0, le=1, description="Weight of the edge to the next chunk, at a cosine of 0."
    )
    next_chunk_raise: float | None = Field(
        None, ge=0, le=1, description="The share that `next_chunk` grows by at a cosine of 1, up to a weight of 1."
    )
    similar_above: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Neighbouring chunks are `similar_to` each other where the cosine is above this; a higher one "
        "makes fewer edges.",
    )
    similar: float | None = Field(None, gt=0, le=1, description="Weight of `similar_to`: this times the cosine.")
    related_above: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Chunks further apart are `related_to` each other where the cosine is above this; a higher one "
        "makes fewer edges.",
    )
    related: float | None = Field(None, gt=0, le=1, description="Weight of `related_to`: this times the cosine.")
    max_related: int | None = Field(
        None, ge=0, le=64, description="A chunk is related to at most so many, the best of each other."
    )
    similar_across: float | None = Field(
        None, gt=0, le=1, description="Weight of a passage of another document that is like one: this times the cosine."
    )
    max_across: int | None = Field(
        None,
        ge=0,
        le=64,
        description="Searches by `graph_method=expansion` go on to so many passages of other documents, those with the "
        "highest cosine above `similar_above`; 0, the default, for none. They are looked up as a "
        "search goes: no `relink`.",
    )

    _whole_numbers = whole_numbers("max_related", "max_across")


class CollectionLinking(BaseModel):
    """How a collection's documents are linked from now on."""

    collection: str
    next_chunk: float
    next_chunk_raise: float
    similar_above: float
    similar: float
    related_above: float
    related: float
    max_related: int
    similar_across: float
    max_across: int
    chosen: LinkingChoice = Field(description="What was chosen for this collection; null where it was not.")
    defaults: LinkingChoice = Field(description=DEFAULTS)
    position: str | None = Field(None, description="Position of the choice on the curation topic; null for none.")
    documents: int | None = Field(None, description=DOCUMENTS)


class ChunkingChoice(BaseModel):
    """How a collection's documents are cut. What is left out, or null, stays as the worker is set up."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    parent_characters: int | None = Field(
        None, ge=200, le=100_000, description="Size of a passage, which a hit shows: at least twice `child_characters`."
    )
    parent_overlap: int | None = Field(
        None, ge=0, le=50_000, description="Characters a passage repeats at most from the one before; up to half of it."
    )
    child_characters: int | None = Field(
        None, ge=50, le=10_000, description="Size of a chunk, which is embedded and matched."
    )
    child_overlap: int | None = Field(
        None, ge=0, le=5_000, description="Characters a chunk repeats from the one before; up to half of it."
    )
    method: ChunkingMethod | None = Field(
        None,
        description="`sentences` fills chunks up to their size; `semantic` also ends them where neighbouring sentences "
        "differ in meaning, for about twice the embedding.",
    )
    language: Language | None = Field(
        None, description="ISO 639 code of the rules by which sentences end; `auto` detects each document's."
    )

    _whole_numbers = whole_numbers("parent_characters", "parent_overlap", "child_characters", "child_overlap")


class ExtractionChoice(BaseModel):
    """What finds a collection's entities and statements."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    extractor: ExtractorName | None = Field(
        None,
        description="`rules`, the default: rules, and the tagger of mentions where the encoder has one; "
        "`language_model`: the endpoint of `THALWEG_LANGUAGE_MODEL__BASE_URL`, to which its texts are sent; "
        "`spacy`: entities by spaCy, an optional extra; `none`: nothing, for a faster ingest.",
    )


class CollectionExtraction(BaseModel):
    """What finds a collection's entities from now on."""

    collection: str
    extractor: ExtractorName
    chosen: ExtractionChoice = Field(description="What was chosen for this collection; null where it was not.")
    defaults: ExtractionChoice = Field(description=DEFAULTS)
    position: str | None = Field(None, description="Position of the choice on the curation topic; null for none.")
    documents: int | None = Field(None, description=DOCUMENTS)


class ExtractionEvent(NamedTuple):
    """`choice` is None where the collection goes back to the default."""

    collection: str
    choice: ExtractionChoice | None


class ChunkingEvent(NamedTuple):
    """`choice` is None where the collection goes back to the defaults."""

    collection: str
    choice: ChunkingChoice | None


class LinkingEvent(NamedTuple):
    """`choice` is None where the collection goes back to the defaults."""

    collection: str
    choice: LinkingChoice | None


SettingEvent = ChunkingEvent | LinkingEvent | ExtractionEvent | GraphSettingsEvent
CurationEvent = SettingEvent | GraphEdit | GenerationEvent | OrderEvent


def settings_key(collection: str, name: str) -> bytes:
    """The record key of what is chosen for a collection. Raises MalformedEvent for what is not a collection."""
    DocumentKey.checked(collection, name)
    return DocumentKey(collection, f"{SETTINGS}/{name}").encoded()


chunking_key = partial(settings_key, name=CHUNKING)
linking_key = partial(settings_key, name=LINKING)
extraction_key = partial(settings_key, name=EXTRACTION)
graph_settings_key = partial(settings_key, name=GRAPH)


def encode_choice(choice: BaseModel) -> bytes:
    return choice.model_dump_json(exclude_none=True).encode()


def decode_curation(key: bytes | None, value: bytes | None) -> CurationEvent | None:
    """The event a record carries; None for a record of another kind.

    Raises MalformedEvent: `bad_key`, `unknown_setting`, `not_json`, `wrong_type`. Whether sizes fit together depends on
    the defaults, and is not looked at.
    """
    name = (key or b"").decode("utf-8", "replace")
    collection, _, rest = name.partition("/")
    kind, _, setting = rest.partition("/")
    if kind not in (SETTINGS, GENERATION, *ORDERS, *EDITS):
        return None
    if "\N{REPLACEMENT CHARACTER}" in name:
        raise MalformedEvent("bad_key", "The record's key is not UTF-8.")
    DocumentKey.checked(collection, setting)
    if kind == GENERATION:
        return _generation(setting, value)
    if kind in ORDERS:
        return decode_order(kind, setting, value, collection)
    if kind in EDITS:
        return _edit(collection, kind, setting, value)
    return _setting(collection, setting, value)


_SETTINGS: dict[str, tuple[Callable[[str, Any], SettingEvent], type[BaseModel]]] = {
    CHUNKING: (ChunkingEvent, ChunkingChoice),
    LINKING: (LinkingEvent, LinkingChoice),
    EXTRACTION: (ExtractionEvent, ExtractionChoice),
    GRAPH: (GraphSettingsEvent, GraphChoice),
}


def _setting(collection: str, setting: str, value: bytes | None) -> SettingEvent:
    if setting not in _SETTINGS:
        known = f"There is no setting {setting[:80]!r} of a collection; known: {', '.join(_SETTINGS)}."
        raise MalformedEvent("unknown_setting", known)
    event, choice = _SETTINGS[setting]
    return event(collection, None if value is None else read_model(choice, value, setting))


def _edit(collection: str, kind: EditKind, identifier: str, value: bytes | None) -> GraphEdit:
    if kind in {NODE, EDGE}:
        raise MalformedEvent("bad_key", f"A {kind} is a document: send it to the documents topic as '{kind}:<id>'.")
    if not is_id_of(kind, identifier):
        raise MalformedEvent("bad_key", f"{identifier[:80]!r} is not an id of a {kind}.")
    edit = None if value is None else read_model(EDITS[kind], value, kind)
    if isinstance(edit, DecisionEdit) and decision_id(edit.entities, edit.about) != identifier:
        raise MalformedEvent("key_mismatch", "The decision is not about the entities that its key is computed from.")
    return GraphEdit(collection, kind, identifier, edit)


def _generation(name: str, value: bytes | None) -> GenerationEvent:
    if GENERATION_NAME.fullmatch(name) is None:
        raise MalformedEvent("bad_key", f"{name[:80]!r} is not a name of a generation, such as g0002-5f3a9c.")
    return GenerationEvent(name, None if value is None else read_model(GenerationOrder, value, "order"))


class CollectionChunking(BaseModel):
    """How a collection's documents are cut from now on: what it has chosen, and the defaults for the rest."""

    collection: str
    parent_characters: int
    parent_overlap: int
    child_characters: int
    child_overlap: int
    method: ChunkingMethod
    language: str
    chosen: ChunkingChoice = Field(description="What was chosen for this collection; null where it was not.")
    defaults: ChunkingChoice = Field(description=DEFAULTS)
    position: str | None = Field(None, description="Position of the choice on the curation topic; null for none.")
    documents: int | None = Field(None, description=DOCUMENTS)


class SettingAccepted(BaseModel):
    """The setting is in the log. Documents that are sent from now on are indexed by it."""

    position: str = Field(description="`<partition>:<offset>` on the curation topic.", examples=["0:3"])
    documents: int | None = Field(None, description=DOCUMENTS)
