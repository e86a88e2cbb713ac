"""From the spans of chunks that overlap to the entity mentions of a document."""

from typing import NamedTuple

import pytest

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import prepare
from indexer.documents import PreparedDocument
from indexer.extraction.entity_mentions import (
    MAX_MENTIONS_PER_CHUNK,
    MAX_NAME_CHARACTERS,
    entity_mentions,
    entity_occurrences,
)
from indexer.extraction.mention_tagger import TaggedSpan
from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey


class Marked(NamedTuple):
    """The n-th place of a name in a chunk, as a tagger would find it."""

    chunk: int
    name: str
    entity_type: str
    confidence: float
    place: int = 0


def prepared_from(text: str, title: str = "Birds") -> PreparedDocument:
    key = DocumentKey("birds", "one")
    chunking = ChunkingParameters(chunk_characters=120, chunk_overlap=60)
    return prepare(DocumentUpsert(key=key, content=text.encode(), content_type="text/plain", title=title), chunking)


def spans_of(prepared: PreparedDocument, *marked: Marked) -> list[list[TaggedSpan]]:
    spans: list[list[TaggedSpan]] = [[] for _ in prepared.embedding_texts]
    for mark in marked:
        text = prepared.embedding_texts[mark.chunk]
        start = text.index(mark.name)
        for _ in range(mark.place):
            start = text.index(mark.name, start + 1)
        spans[mark.chunk].append(TaggedSpan(start, start + len(mark.name), mark.entity_type, mark.confidence))
    return spans


SENTENCES = "Peter Holt lives in the old town of Omsk. He founded the Heron Club there, which Holt still leads."


def test_offsets_are_those_of_the_document_and_the_title_in_front_does_not_count() -> None:
    prepared = prepared_from(SENTENCES)
    spans = spans_of(prepared, Marked(0, "Birds", "thing", 0.9), Marked(0, "Heron Club", "organisation", 0.8))
    (one,) = entity_occurrences(prepared, spans)
    assert SENTENCES[one.start : one.end] == one.surface == "Heron Club"
    assert (one.chunk, one.name, one.entity_type, one.confidence) == (0, "heron club", "organisation", 0.8)


def test_equal_names_have_one_type_by_vote() -> None:
    """.9 for a person against .9 + .8 for an organisation: organisation, with 1.7 over three mentions."""
    prepared = prepared_from("Holt came. HOLT went. Then Holt's dog came back, and the day was over at last.")
    spans = spans_of(
        prepared,
        Marked(0, "Holt", "person", 0.9),
        Marked(0, "HOLT", "organisation", 0.9),
        Marked(0, "Holt", "organisation", 0.8, place=1),
    )
    occurrences = entity_occurrences(prepared, spans)
    assert {(one.name, one.entity_type, one.confidence) for one in occurrences} == {("holt", "organisation", 0.567)}
    (mention,) = entity_mentions(prepared, spans)
    assert (mention.surface, mention.count, mention.sentences) == ("Holt", 3, (0, 1, 2))


def test_a_tie_goes_by_the_alphabet_whatever_comes_first() -> None:
    prepared = prepared_from("Omsk and Omsk are two towns of the same name, or so people say who came from there.")
    for first, second in (("place", "organisation"), ("organisation", "place")):
        spans = spans_of(prepared, Marked(0, "Omsk", first, 1.0), Marked(0, "Omsk", second, 1.0, place=1))
        assert {one.entity_type for one in entity_occurrences(prepared, spans)} == {"organisation"}


def test_what_two_chunks_share_counts_once_and_a_cut_name_gives_way() -> None:
    text = (
        "The river is long, and many birds live on it in spring. "
        "In Old Novosibirsk Peter Sergeyevich Holt Founded The Heron Club Of Omsk And Tomsk. "
        "Anna Petrova Joined. It has many members, who meet on Sundays in the town hall, and some of them draw."
    )
    prepared = prepared_from(text)
    chunks = prepared.chunked.chunks
    shared = next(number for number in range(1, len(chunks)) if chunks[number].start < chunks[number - 1].end)
    begin = chunks[shared].text.split()[0]
    name = " ".join(chunks[shared].text.split()[:2])
    whole = f"{text[: chunks[shared].start].rsplit(maxsplit=1)[-1]} {name}"
    assert whole in chunks[shared - 1].text
    spans = spans_of(prepared, Marked(shared - 1, whole, "place", 0.6), Marked(shared, name, "person", 0.9))
    (one,) = entity_occurrences(prepared, spans)
    assert (one.surface, one.chunk) == (whole, shared - 1)
    spans = spans_of(prepared, Marked(shared - 1, begin, "place", 0.6), Marked(shared, begin, "place", 0.9))
    assert len(entity_occurrences(prepared, spans)) == 1


def test_numbers_stop_words_and_punctuation_are_no_entities() -> None:
    prepared = prepared_from("The three of them met at Omsk -- and left.")
    spans = spans_of(
        prepared, Marked(0, "three", "number", 1.0), Marked(0, "The", "thing", 0.5), Marked(0, "--", "thing", 0.5)
    )
    assert [one.name for one in entity_occurrences(prepared, spans)] == ["three"]
    assert entity_mentions(prepared, spans) == []


def test_a_chunk_names_a_bounded_number_of_entities() -> None:
    names = [f"Q{chr(97 + first)}{chr(97 + second)}" for first in range(10) for second in range(10)]
    prepared = prepare(
        DocumentUpsert(
            key=DocumentKey("birds", "one"), content=" ".join(names).encode(), content_type="text/plain", title="Birds"
        ),
        ChunkingParameters(chunk_characters=600),
    )
    spans = spans_of(
        prepared, *(Marked(0, name, "thing", 0.5) for name in names if name in prepared.embedding_texts[0])
    )
    assert len(spans[0]) > MAX_MENTIONS_PER_CHUNK
    assert len(entity_mentions(prepared, spans)) == MAX_MENTIONS_PER_CHUNK


def test_a_common_word_with_a_capital_for_its_place_is_no_entity() -> None:
    prepared = prepared_from("Worker: it runs. The worker of Holt stops at night, and so does the Heron.")
    spans = spans_of(prepared, Marked(0, "Worker", "thing", 0.9), Marked(0, "Heron", "thing", 0.9))
    assert [one.name for one in entity_occurrences(prepared, spans)] == ["heron"]


def test_code_and_durations_are_no_entities_but_years_are() -> None:
    prepared = prepared_from("In 1998 it took ten minutes to read Holt.name there, and a day to read Omsk.")
    spans = spans_of(
        prepared,
        Marked(0, "1998", "time", 0.9),
        Marked(0, "ten minutes", "time", 0.9),
        Marked(0, "Holt", "person", 0.9),
        Marked(0, "Omsk", "place", 0.9),
    )
    assert [mention.name for mention in entity_mentions(prepared, spans)] == ["1998", "omsk"]
    assert [one.name for one in entity_occurrences(prepared, spans)] == ["1998", "ten minutes", "omsk"]


def test_a_thing_is_what_one_of_its_places_tells() -> None:
    prepared = prepared_from('They sang "Heron" in Omsk. Later Heron became known all over the country, and beyond it.')
    spans = spans_of(prepared, Marked(0, "Heron", "thing", 0.9), Marked(0, "Heron", "thing", 0.7, place=1))
    assert {(one.name, one.entity_type, one.confidence) for one in entity_occurrences(prepared, spans)} == {
        ("heron", "work", 0.8)
    }


@pytest.mark.parametrize("name", ["A" * 10_000, "a1" * 5_000, "_" * 3_000, "Ann " * 2_000, "!" * 400])
@pytest.mark.processor_seconds(2)
def test_an_endless_name_is_none(name: str) -> None:
    prepared = prepared_from(f"They know {name} well.")
    spans = [
        [TaggedSpan(len(text) - len(chunk.text), len(text), "thing", 0.9)]
        for text, chunk in zip(prepared.embedding_texts, prepared.chunked.chunks, strict=True)
    ]
    assert all(len(one.name) <= MAX_NAME_CHARACTERS for one in entity_occurrences(prepared, spans))


TECHNICAL = "It calls boat_rate and wave_rate first. "


@pytest.mark.parametrize(
    ("text", "name", "confidence", "is_kept"),
    [
        ("He chose Settings there.", "Settings", 0.8, True),  # no technical text
        ("He chose Settings there.", "Settings", 0.4, False),
        (f"{TECHNICAL}He chose Settings there.", "Settings", 0.8, False),
        (f"{TECHNICAL}He chose Settings there.", "Settings", 0.97, True),
        (f"{TECHNICAL}He chose Omsk there.", "Omsk", 0.3, True),
        (f"{TECHNICAL}It is so (see Local Settings).", "Local Settings", 0.99, False),
        (f"{TECHNICAL}Settings are read.", "Settings", 0.9, False),
        (f"{TECHNICAL}Port of the old one.", "Port", 0.9, False),
        ("It stands in the Bibliography.", "Bibliography", 0.99, False),
    ],
)
def test_common_words_are_a_name_where_a_mention_inside_a_sentence_is_sure(
    text: str, name: str, confidence: float, is_kept: bool
) -> None:
    prepared = prepared_from(text)
    found = entity_occurrences(prepared, spans_of(prepared, Marked(0, name, "thing", confidence)))
    assert [one.surface for one in found] == ([name] if is_kept else [])


def test_common_words_are_a_name_in_a_list_of_names() -> None:
    prepared = prepared_from(f"{TECHNICAL}They sell Omsk, Option and Style.")
    spans = spans_of(
        prepared,
        Marked(0, "Omsk", "thing", 0.9),
        Marked(0, "Option", "thing", 0.6),
        Marked(0, "Style", "thing", 0.6),
    )
    assert [one.surface for one in entity_occurrences(prepared, spans)] == ["Omsk", "Option"]


def test_common_words_are_a_name_where_they_are_repeated_as_one() -> None:
    prepared = prepared_from(f"{TECHNICAL}The Option is, an Option was, if Option.")
    marked = [Marked(0, "Option", "thing", 0.6, place) for place in range(3)]
    assert len(entity_occurrences(prepared, spans_of(prepared, *marked))) == 3
    assert entity_occurrences(prepared, spans_of(prepared, *marked[:2])) == []


def test_a_common_noun_behind_a_name_is_left_out_in_technical_texts() -> None:
    text = f"{TECHNICAL}It needs Omsk, or the Omsk config."
    prepared = prepared_from(text)
    spans = spans_of(prepared, Marked(0, "Omsk", "thing", 0.9), Marked(0, "Omsk config", "thing", 0.9))
    found = entity_occurrences(prepared, spans)
    assert [text[one.start : one.end] for one in found] == ["Omsk", "Omsk"]


def test_a_common_word_before_a_name_is_left_out_where_it_begins_a_sentence() -> None:
    prepared = prepared_from(f"{TECHNICAL}Restart Omsk. Options in Tula. So does Local Perm. In Local Perm it is.")
    marked = [Marked(0, name, "thing", 0.9) for name in ("Restart Omsk", "Options in Tula", "Local Perm")]
    spans = spans_of(prepared, *marked, Marked(0, "Local Perm", "thing", 0.9, 1))
    found = [one.surface for one in entity_occurrences(prepared, spans)]
    assert found == ["Omsk", "Tula", "Local Perm", "Local Perm"]


def test_no_person_by_its_form_is_a_thing() -> None:
    prepared = prepared_from("He sends SIGBOAT, and then Holt asks QueryPlan.")
    spans = spans_of(
        prepared,
        Marked(0, "SIGBOAT", "person", 0.9),
        Marked(0, "Holt", "person", 0.9),
        Marked(0, "QueryPlan", "person", 0.9),
    )
    assert {one.surface: one.entity_type for one in entity_occurrences(prepared, spans)} == {
        "SIGBOAT": "thing",
        "Holt": "person",
        "QueryPlan": "product",
    }


CODE = "The CI of Omsk uses HeronForm, which is typing.HeronForm, with heron_form and get_form. Then bsddb3 is off."


def test_technical_text_has_no_acronym_as_organisation_by_little() -> None:
    prepared = prepared_from(CODE)
    marks = [
        Marked(0, "CI", "organisation", 0.8),
        Marked(0, "HeronForm", "thing", 0.9),
        Marked(0, "Omsk", "place", 0.7),
        Marked(0, "bsddb3", "organisation", 0.9),
    ]
    found = {one.surface: one.entity_type for one in entity_occurrences(prepared, spans_of(prepared, *marks))}
    assert found == {"CI": "thing", "HeronForm": "identifier", "Omsk": "place", "bsddb3": "thing"}


def test_common_word_alone_is_a_name_only_inside_a_sentence() -> None:
    prepared = prepared_from("Weather is fine. We read the Weather on Sundays.")
    inside = spans_of(prepared, Marked(0, "Weather", "thing", 0.9), Marked(0, "Weather", "thing", 0.9, 1))
    outside = spans_of(prepared, Marked(0, "Weather", "organisation", 0.99))
    assert [one.surface for one in entity_occurrences(prepared, inside)] == ["Weather", "Weather"]
    assert entity_occurrences(prepared, outside) == []
