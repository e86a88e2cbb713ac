"""Entity mentions: which entities each chunk names, how often, and in which sentences."""

from collections.abc import Iterable, Iterator
from operator import itemgetter

from indexer.documents import ChunkedDocument, Mention, ParsedDocument
from indexer.extraction.entity_mentions import EntityMention
from indexer.extraction.keyphrases import emphasised_phrases, occurrences, repeated_phrases, tokens_of, topic_headings
from indexer.extraction.names import Name, code_in, dates_in, name_of, names_in, quoted_in
from indexer.extraction.offsets import OffsetIndex
from indexer.extraction.series import series_of_path

MAX_MENTIONS_PER_CHUNK = 64
MIN_CHARACTERS_TO_REPEAT = 500
# The most specific type wins where rules disagree.
_TYPES = ("person", "organisation", "place", "work", "identifier", "time", "concept", "thing")
_TYPED_BY_RULES = frozenset(("person", "organisation", "place", "work", "identifier", "time"))
RULE_CONFIDENCE = 0.5
_RANK = {kind: rank for rank, kind in enumerate(_TYPES)}


def extract_mentions(parsed: ParsedDocument, chunked: ChunkedDocument, offsets: OffsetIndex) -> tuple[Mention, ...]:
    """The entities named in each chunk, by chunk and then by name; each occurrence counts in one chunk only.

    At most MAX_MENTIONS_PER_CHUNK entities a chunk, the first ones.
    """
    by_chunk: dict[int, dict[str, _Entity]] = {}
    doubtful: list[Name] = []
    certain: set[str] = set()
    for name in _names(parsed, chunked, offsets):
        if name.sure:
            certain.add(name.name)
            _count(by_chunk, name, offsets.chunk_at(name.start))
        else:
            doubtful.append(name)
    for name in doubtful:
        if name.name in certain:
            _count(by_chunk, name, offsets.chunk_at(name.start))
    for start, heading in topic_headings(chunked.sections):
        _count(by_chunk, Name(start, start, name_of(heading), heading, "concept"), offsets.chunk_from(start))
    return tuple(mention for chunk in sorted(by_chunk) for mention in _mentions(chunk, by_chunk[chunk], offsets))


def entities_by_rules(mentions: Iterable[Mention]) -> list[EntityMention]:
    """The terms whose words show what they are the name of: the entities, where no model finds them."""
    return [
        EntityMention(one.chunk, one.name, one.surface, one.count, one.sentences, one.kind, RULE_CONFIDENCE)
        for one in mentions
        if one.kind in _TYPED_BY_RULES
    ]


class _Entity:
    """One entity in one chunk."""

    __slots__ = ("kind", "starts", "surface")

    def __init__(self, surface: str, kind: str, start: int) -> None:
        self.surface = surface
        self.kind = kind
        self.starts = [start]


def _names(parsed: ParsedDocument, chunked: ChunkedDocument, offsets: OffsetIndex) -> Iterator[Name]:
    text = parsed.text
    for start, end in offsets.sentences:
        yield from names_in(text, start, end)
    for section in chunked.sections:
        yield from quoted_in(text, section.start, section.end)
        yield from dates_in(text, section.start, section.end)
        yield from code_in(text, section.start, section.end)
    for link in parsed.links:
        series = series_of_path(link.target.partition("#")[0])
        if series:
            yield Name(link.start, link.start, name_of(series.identifier), series.identifier, "identifier")
    emphasised = emphasised_phrases(parsed, chunked.sections)
    if emphasised or len(text) > MIN_CHARACTERS_TO_REPEAT:
        tokens = tokens_of(text)
        yield from occurrences(text, tokens, repeated_phrases(tokens) | emphasised)


def _count(by_chunk: dict[int, dict[str, _Entity]], name: Name, chunk: int) -> None:
    if chunk < 0 or not name.name:
        return
    entities = by_chunk.setdefault(chunk, {})
    known = entities.get(name.name)
    if known is None:
        entities[name.name] = _Entity(name.surface, name.kind, name.start)
        return
    known.starts.append(name.start)
    if _RANK[name.kind] < _RANK[known.kind]:
        known.kind = name.kind


def _mentions(chunk: int, entities: dict[str, _Entity], offsets: OffsetIndex) -> Iterator[Mention]:
    found = list(entities.items())
    if len(found) > MAX_MENTIONS_PER_CHUNK:
        found = sorted(found, key=lambda entry: (min(entry[1].starts), entry[0]))[:MAX_MENTIONS_PER_CHUNK]
    for name, entity in sorted(found, key=itemgetter(0)):
        starts = set(entity.starts)
        sentences = sorted({offsets.sentence_at(start) for start in starts})
        yield Mention(chunk, name, entity.surface, entity.kind, len(starts), tuple(sentences))
