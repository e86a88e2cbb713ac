"""Mentions: which entities each chunk names, how often, and in which sentences."""

from collections.abc import Iterator
from operator import itemgetter

from indexer.documents import ChunkedDocument, Mention, ParsedDocument
from indexer.extraction.keyphrases import occurrences, repeated_phrases, set_off_phrases, telling_headings, tokens_of
from indexer.extraction.names import Name, code_in, dates_in, names_in, quoted_in
from indexer.extraction.positions import Places
from indexer.extraction.runs import name_of
from indexer.extraction.series import series_of_path

MAX_MENTIONS_PER_CHUNK = 64
MIN_CHARACTERS_TO_REPEAT = 500
_MOST_TELLING_FIRST = ("person", "organisation", "place", "work", "identifier", "time", "concept", "thing")
_TELLING = {kind: rank for rank, kind in enumerate(_MOST_TELLING_FIRST)}


def extract_mentions(
    parsed: ParsedDocument, chunked: ChunkedDocument, places: Places | None = None
) -> tuple[Mention, ...]:
    """The entities named in each chunk, by chunk and then by name; each place counts in one chunk only.

    A function of this document alone: which other documents exist, or come later, plays no part. At most 64 entities a
    chunk, the first ones.
    """
    places = places or Places.of(parsed, chunked)
    gathered: dict[tuple[int, str], _Gathered] = {}
    doubtful: list[Name] = []
    certain: set[str] = set()
    for name in _names(parsed, chunked, places):
        if name.sure:
            certain.add(name.name)
            _gather(gathered, name, places.chunk_at(name.start))
        else:
            doubtful.append(name)
    for name in doubtful:
        if name.name in certain:
            _gather(gathered, name, places.chunk_at(name.start))
    for start, heading in telling_headings(chunked.sections):
        _gather(gathered, Name(start, start, name_of(heading), heading, "concept"), places.chunk_from(start))
    by_chunk: dict[int, list[tuple[str, _Gathered]]] = {}
    for (chunk, known), one in gathered.items():
        by_chunk.setdefault(chunk, []).append((known, one))
    return tuple(mention for chunk in sorted(by_chunk) for mention in _mentions(chunk, by_chunk[chunk], places))


class _Gathered:
    """What is known so far of one entity in one chunk."""

    __slots__ = ("kind", "starts", "surface")

    def __init__(self, surface: str, kind: str, start: int) -> None:
        self.surface = surface
        self.kind = kind
        self.starts = [start]


def _names(parsed: ParsedDocument, chunked: ChunkedDocument, places: Places) -> Iterator[Name]:
    text = parsed.text
    for start, end in places.sentences:
        yield from names_in(text, start, end)
    for section in chunked.sections:
        yield from quoted_in(text, section.start, section.end)
        yield from dates_in(text, section.start, section.end)
        yield from code_in(text, section.start, section.end)
    for link in parsed.links:
        series = series_of_path(link.target.partition("#")[0])
        if series:
            yield Name(link.start, link.start, name_of(series.identifier), series.identifier, "identifier")
    set_off = set_off_phrases(parsed, chunked.sections)
    if set_off or len(text) > MIN_CHARACTERS_TO_REPEAT:
        tokens = tokens_of(text)
        yield from occurrences(text, tokens, repeated_phrases(tokens) | set_off)


def _gather(gathered: dict[tuple[int, str], _Gathered], name: Name, chunk: int) -> None:
    if chunk < 0 or not name.name:
        return
    known = gathered.get((chunk, name.name))
    if known is None:
        gathered[chunk, name.name] = _Gathered(name.surface, name.kind, name.start)
        return
    known.starts.append(name.start)
    if _TELLING[name.kind] < _TELLING[known.kind]:
        known.kind = name.kind


def _mentions(chunk: int, found: list[tuple[str, _Gathered]], places: Places) -> Iterator[Mention]:
    if len(found) > MAX_MENTIONS_PER_CHUNK:
        found = sorted(found, key=lambda entry: (min(entry[1].starts), entry[0]))[:MAX_MENTIONS_PER_CHUNK]
    for name, one in sorted(found, key=itemgetter(0)):
        starts = set(one.starts)
        sentences = sorted({places.sentence_at(start) for start in starts})
        yield Mention(chunk, name, one.surface, one.kind, len(starts), tuple(sentences))
