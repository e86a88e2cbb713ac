"""What questions are generated from: a collection's documents, read over HTTP alone, and its vocabulary.

A document's fields are its metadata and what its header states, which the graph holds as statements of full confidence.
A relation is a field whose value names another document; a link is one that the text makes.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import msgspec
import Stemmer

from indexer.chunking.sentences import sentence_spans
from query_api.client import ServiceClient
from schemas.errors import WrongSetting
from schemas.progress_bars import Bars

PAGE_DOCUMENTS = 1_000
MAX_NODES = 2_000
THREADS = 2
STATED_CONFIDENCE = 1.0
MAX_VALUE_CHARACTERS = 60

JSONObject = dict[str, Any]


class IndexedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """`names` are what the document is called, its title first; `fields` {name: values}; `relations` (field, document
    id) and `links` document ids, each without the document itself."""

    id: str
    title: str
    text: str
    names: tuple[str, ...]
    fields: Mapping[str, tuple[str, ...]]
    relations: tuple[tuple[str, str], ...]
    links: tuple[str, ...]


class _RawDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one document before the others are: `about` and `stated` name entities by id."""

    id: str
    title: str
    text: str
    about: Mapping[str, str]
    metadata: Mapping[str, Any]
    stated: tuple[tuple[str, str, str], ...]
    links: tuple[str, ...]


def read_collection(client: ServiceClient, collection: str, bars: Bars) -> tuple[IndexedDocument, ...]:
    """Every document of the collection, by id. Raises WrongSetting for an empty one, and the client's failures."""
    listed = sorted(client.documents(collection, hand_made=False), key=lambda summary: str(summary["id"]))
    if not listed:
        raise WrongSetting(
            f"The collection {collection!r} is empty, or there is none. Load it, or name another collection."
        )
    read_so_far = bars(f"read: {collection}", len(listed))

    def read(summary: JSONObject) -> _RawDocument:
        found = _read(client, collection, summary)
        read_so_far.advance()
        return found

    with ThreadPoolExecutor(THREADS) as threads:
        documents = list(threads.map(read, listed))
    return _linked(documents)


def _read(client: ServiceClient, collection: str, summary: JSONObject) -> _RawDocument:
    key = f"{collection}/{summary['id']}"
    detail = client.get(f"/v1/documents/{quote(summary['id'], safe='')}", {"collection": collection})
    about = client.get(f"/v1/nodes/{quote(key, safe='')}", {"kinds": "about", "limit": PAGE_DOCUMENTS})
    around = client.get(
        "/v1/graph",
        {"node": key, "depth": 2, "kinds": ["has_chunk", "states", "links_to"], "limit": MAX_NODES, "outward": True},
    )
    nodes = {node["id"]: node for node in around["nodes"]}
    subjects = {each["node"]["id"]: str(each["node"]["label"]) for each in about["neighbours"]}
    own = {edge["to"] for edge in around["edges"] if edge["kind"] == "has_chunk" and edge["from"] == key}
    leaving = [edge for edge in around["edges"] if edge["from"] in own]
    return _RawDocument(
        id=summary["id"],
        title=summary["title"],
        text=detail["text"],
        about=subjects,
        metadata=summary["metadata"],
        stated=tuple(sorted(_stated([edge for edge in leaving if edge["kind"] == "states"], subjects, nodes))),
        links=tuple(sorted({str(nodes[edge["to"]]["document_id"]) for edge in leaving if edge["kind"] == "links_to"})),
    )


def _stated(
    edges: Iterable[JSONObject], subjects: Collection[str], nodes: Mapping[str, JSONObject]
) -> Iterator[tuple[str, str, str]]:
    """(predicate, id of the object, its label) of what a document states of its subjects, in full confidence."""
    roles = [(*edge["label"].rpartition(" ")[::2], edge) for edge in edges]
    of_itself = {predicate for predicate, role, edge in roles if role == "(subject)" and edge["to"] in subjects}
    for predicate, role, edge in roles:
        if predicate in of_itself and role == "(object)" and edge["weight"] >= STATED_CONFIDENCE:
            yield predicate, edge["to"], str(nodes[edge["to"]]["label"])


def _linked(documents: Iterable[_RawDocument]) -> tuple[IndexedDocument, ...]:
    """Each with its relations to the others: an entity that one document alone is about identifies that document."""
    read = list(documents)
    known = {document.id for document in read}
    about: dict[str, list[str]] = {}
    for document in read:
        for entity in document.about:
            about.setdefault(entity, []).append(document.id)
    named = {entity: ids[0] for entity, ids in about.items() if len(ids) == 1}
    return tuple(
        IndexedDocument(
            id=document.id,
            title=document.title,
            text=document.text,
            names=tuple(dict.fromkeys([document.title, *sorted(document.about.values())])),
            fields=_fields(document, named),
            relations=tuple(
                sorted(
                    {
                        (field, named[entity])
                        for field, entity, _ in document.stated
                        if entity in named and named[entity] != document.id
                    }
                )
            ),
            links=tuple(link for link in document.links if link != document.id and link in known),
        )
        for document in read
    )


def _fields(document: _RawDocument, named: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Metadata and stated values, as the text spells them; without those that name documents or are long."""
    values: dict[str, dict[str, str]] = {}
    naming = {field for field, entity, _ in document.stated if entity in named}
    for field, value in _flat(document.metadata):
        if field.lower() in naming:
            continue
        values.setdefault(field.lower(), {}).setdefault(value.lower(), value)
    lowered = document.text.lower()
    same_length = len(lowered) == len(document.text)
    for field, entity, label in document.stated:
        if entity not in named:
            at = lowered.find(label.lower()) if same_length else -1
            spelling = document.text[at : at + len(label)] if at >= 0 else label
            values.setdefault(field, {}).setdefault(label.lower(), spelling)
    return {
        field: tuple(value for _, value in sorted(found.items()))
        for field, found in sorted(values.items())
        if all(0 < len(value) <= MAX_VALUE_CHARACTERS and value.isprintable() for value in found.values())
    }


def _flat(metadata: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for field, value in metadata.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str | int) and not isinstance(one, bool):
                yield field, str(one)


WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
MIN_CHARACTERS = 4
COMMON_SHARE = 0.2


def words(text: str) -> list[str]:
    """The words of the text in their order, in lower case."""
    return [word.lower() for word in WORD.findall(text)]


def sentences(text: str) -> list[str]:
    """Its sentences in their order, each on one line."""
    return [" ".join(text[start:end].split()) for start, end in sentence_spans(text)]


class Vocabulary:
    """Counted once over a collection; immutable afterwards."""

    def __init__(self, documents: Sequence[IndexedDocument]) -> None:
        self._stem = Stemmer.Stemmer("english").stemWord
        self.size = len(documents)
        self._of_document = {each.id: frozenset(words(f"{each.title} {each.text}")) for each in documents}
        self._documents = Counter(word for found in self._of_document.values() for word in found)
        self._stems = {id_: frozenset(map(self._stem, found)) for id_, found in self._of_document.items()}
        forms: dict[str, list[str]] = {}
        for word in sorted(self._documents):
            forms.setdefault(self._stem(word), []).append(word)
        self._forms = forms

    def frequency(self, word: str) -> int:
        """The number of documents that have the word."""
        return self._documents[word]

    def stems(self, text: Iterable[str]) -> frozenset[str]:
        return frozenset(map(self._stem, text))

    def is_content_word(self, word: str) -> bool:
        """Whether the word says what a text is about: not short, and not in every fifth document or more."""
        most = max(2.0, COMMON_SHARE * self.size)
        return len(word) >= MIN_CHARACTERS and self._documents[word] <= most

    def other_form(self, word: str, rng: random.Random) -> str:
        """Another form of the word that the collection has, such as its plural; the word itself where there is none."""
        others = [form for form in self._forms.get(self._stem(word), ()) if form != word and self._documents[form] > 1]
        return rng.choice(others) if others else word

    def documents_with(self, stems: frozenset[str]) -> list[str]:
        """The documents that have all these stems."""
        return [id_ for id_, found in self._stems.items() if stems <= found]


class Step(msgspec.Struct, frozen=True, rename={"source": "from", "target": "to"}):
    """An edge of a gold path, from document id to document id; `evidence` is the sentence or the field it rests on."""

    source: str
    edge: str
    target: str
    evidence: str


class GeneratedQuestion(msgspec.Struct, frozen=True):
    """`gold` is {document id: grade}; `path` is what a reader has to follow, empty where one document is enough;
    `answer` what a right answer says, empty where any text of the documents does."""

    kind: str
    text: str
    gold: Mapping[str, int]
    path: tuple[Step, ...] = ()
    answer: str = ""


class Source(msgspec.Struct, frozen=True):
    """What questions are made of: the documents, by id, and the words they have."""

    documents: Sequence[IndexedDocument]
    vocabulary: Vocabulary
    by_id: Mapping[str, IndexedDocument]


Generator = Callable[[Source, random.Random], Iterator[GeneratedQuestion]]
"""Makes questions of its kind, in an order that rng decides, until there are no more."""
