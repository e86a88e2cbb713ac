"""Which chunk mentions what, how often, and in which sentences."""

from collections.abc import Callable
from itertools import permutations

from indexer.documents import AboutName, Chunk, ChunkedDocument, Mention, ParsedDocument, Section, TextLink
from indexer.extraction import entities
from indexer.extraction.entities import MAX_MENTIONS_PER_CHUNK
from indexer.extraction.offsets import OffsetIndex
from indexer.extraction.titles import about_names
from schemas.ids import DocumentKey

Make = Callable[..., tuple[ParsedDocument, ChunkedDocument]]


def extract_mentions(parsed: ParsedDocument, chunked: ChunkedDocument) -> tuple[Mention, ...]:
    return entities.extract_mentions(parsed, chunked, OffsetIndex.from_document(parsed, chunked))


def test_a_mention_counts_where_it_begins(document: Make) -> None:
    text = "We met Ada Lovelace. Then we left. Ada Lovelace wrote to Babbage."
    parsed, chunked = document(text, size=34)  # the second chunk begins behind "Then we left."
    mentions = {(one.chunk, one.name): one for one in extract_mentions(parsed, chunked)}
    assert mentions[0, "ada lovelace"].count == 1
    assert mentions[0, "ada lovelace"].sentences == (0,)
    assert mentions[1, "ada lovelace"].sentences == (2,)
    assert mentions[1, "babbage"].sentences == (2,)
    assert (0, "babbage") not in mentions


def test_count_and_sentences_add_up(document: Make) -> None:
    parsed, chunked = document("We met Ada Lovelace and Ada Lovelace. Later on Ada Lovelace left.")
    [ada] = [one for one in extract_mentions(parsed, chunked) if one.name == "ada lovelace"]
    assert (ada.count, ada.sentences, ada.surface, ada.kind) == (3, (0, 1), "Ada Lovelace", "thing")


def test_in_overlapping_chunks_the_first_one_has_the_mention() -> None:
    text = "We met Ada Lovelace. We left."
    section = Section((), 0, len(text))
    chunks = (Chunk("a", 0, 0, 0, 0, 20, text[:20]), Chunk("b", 1, 0, 0, 3, len(text), text[3:]))
    mentions = extract_mentions(ParsedDocument(None, text, (section,)), ChunkedDocument((section,), (), chunks))
    assert [one.chunk for one in mentions] == [0]


def test_offsets_when_a_later_chunk_ends_earlier() -> None:
    text = "x" * 100
    section = Section((), 0, 100)
    bounds = [(0, 50), (20, 40), (45, 100)]
    chunks = tuple(Chunk(str(n), n, 0, 0, start, end, text[start:end]) for n, (start, end) in enumerate(bounds))
    offsets = OffsetIndex.from_document(ParsedDocument(None, text, (section,)), ChunkedDocument((section,), (), chunks))
    assert [offsets.chunk_at(position) for position in (0, 30, 49, 50, 99, 100)] == [0, 0, 0, 2, 2, -1]
    assert offsets.chunk_from(100) == 2


def test_a_common_word_that_is_a_name_elsewhere_in_the_document_counts(document: Make) -> None:
    parsed, chunked = document("Running is fun. We like Running with Scissors. They say that Running sold well.")
    [running] = [one for one in extract_mentions(parsed, chunked) if one.name == "running"]
    assert running.sentences == (0, 1, 2)
    parsed, chunked = document("Running is fun. We run.")
    assert extract_mentions(parsed, chunked) == ()


def test_emphasised_phrases_headings_and_repeated_phrases_are_concepts(document: Make) -> None:
    words = "the global interpreter lock is slow and so on. " * 40
    heading = "Garbage collection"
    text = f"{heading}\n\n{words}some say free threading helps."
    parsed, chunked = document(
        text, sections=(Section((heading,), len(heading) + 2, len(text)),), emphasised=("free threading", "not")
    )
    mentions = {one.name: one for one in extract_mentions(parsed, chunked)}
    assert {name: one.kind for name, one in mentions.items()} == {
        "garbage collection": "concept",
        "global interpreter lock": "concept",
        "free threading": "concept",
    }
    assert mentions["global interpreter lock"].count == 40


def test_an_acronym_in_brackets_is_mentioned_beside_its_long_form(document: Make) -> None:
    parsed, chunked = document("We removed the Global Interpreter Lock (GIL) today.")
    assert {"global interpreter lock", "gil"} <= {one.name for one in extract_mentions(parsed, chunked)}


def test_a_link_to_a_numbered_document_mentions_it(document: Make) -> None:
    text = "Read the style guide first."
    parsed, chunked = document(text, links=(TextLink("pep-0008#tabs", "style guide", 9),))
    assert [one.surface for one in extract_mentions(parsed, chunked)] == ["PEP 8"]


def test_kinds_come_from_the_words(document: Make) -> None:
    text = (
        "We met Alice Liddell of Oxford University at Lake Geneva on 4 July 1862, with PEP 8 and asyncio.run, "
        'in "Blue Sky".'
    )
    parsed, chunked = document(text)
    kinds = {one.name: one.kind for one in extract_mentions(parsed, chunked)}
    assert kinds["alice liddell"] == "person"
    assert kinds["oxford university"] == "organisation"
    assert kinds["lake geneva"] == "place"
    assert kinds["4 july 1862"] == "time"
    assert kinds["pep 8"] == "identifier"
    assert kinds["asyncio.run"] == "identifier"
    assert kinds["blue sky"] == "work"


def test_mention_and_title_meet_whichever_document_comes_first(document: Make) -> None:
    titles = ["Meet Corliss Archer", "Nelson Rockefeller", "PEP 8", "Gone with the Wind", "Łódź", "English language"]
    texts = [
        'She played in "Meet Corliss Archer" with friends.',
        "It was signed by New York Governor Nelson Rockefeller.",
        "This follows PEP 8 closely.",
        "They watched Gone with the Wind twice.",
        "He moved to Łódź.",
        "It is an English language novel.",
    ]

    def indexed(order: tuple[int, ...]) -> dict[int, tuple[frozenset[str], tuple[AboutName, ...]]]:
        result = {}
        for number in order:
            parsed, chunked = document(texts[number], title=titles[number])
            names = frozenset(one.name for one in extract_mentions(parsed, chunked))
            result[number] = names, about_names(titles[number], parsed, DocumentKey("d", f"{number}.md"))
        return result

    outcomes = [indexed(order) for order in list(permutations(range(6)))[::97]]
    assert all(outcome == outcomes[0] for outcome in outcomes)
    for names, about in outcomes[0].values():
        assert about[0].name in names


def test_the_mentions_of_a_chunk_are_bounded(document: Make) -> None:
    parsed, chunked = document(" ".join(f"we met Xa{number}b too." for number in range(500)))
    assert len(extract_mentions(parsed, chunked)) == MAX_MENTIONS_PER_CHUNK
