"""Titles and summaries of communities."""

from indexer.communities.summaries import Member, SourceChunk, summary_of, title_of

ADA = Member("1" * 32, "Ada Lovelace", "person", 4.0)
BABBAGE = Member("2" * 32, "Charles Babbage", "person", 3.0)
ENGINE = Member("3" * 32, "Analytical Engine", "product", 2.0)
LONG = Member("4" * 32, "Sketch of the Analytical Engine invented by Charles Babbage", "work", 5.0)
MEMBERS = [ADA, BABBAGE, ENGINE]


def chunk(name: str, document: str, *members: int) -> SourceChunk:
    return SourceChunk(name, document, members)


def test_a_title_names_the_three_strongest_that_are_short() -> None:
    assert title_of([LONG, *MEMBERS]) == ("Ada Lovelace, Charles Babbage, Analytical Engine", "")
    assert title_of([LONG]) == ("Works: Sketch of the Analytical Engine", "work")


def test_a_title_begins_with_the_type_of_most_members() -> None:
    assert title_of(MEMBERS) == ("People: Ada Lovelace, Charles Babbage, Analytical Engine", "person")
    assert title_of([ADA, ENGINE])[1] == "", "half is not most"
    assert title_of([Member("5" * 32, "Term", "", 1.0)]) == ("Term", "")


def test_a_title_names_values_and_identifiers_last() -> None:
    value = Member("7" * 32, "Standards Track", "work", 9.0, is_value=True)
    identifier = Member("8" * 32, "RFC 9110", "identifier", 8.0)
    assert title_of([value, identifier, ENGINE, BABBAGE])[0] == "Analytical Engine, Charles Babbage"
    assert title_of([value, identifier])[0] == "RFC 9110"
    dates = [Member(str(at) * 32, f"1837-0{at}-01", "time", 9.0 - at, is_value=True) for at in range(1, 4)]
    assert title_of([*dates, ENGINE]) == ("Analytical Engine", "time")


def test_a_summary_takes_whole_sentences_with_their_sources() -> None:
    texts = {
        "c1": "Ada Lovelace wrote about the Analytical Engine. It rained in London all day long.",
        "c2": "Charles Babbage designed the Analytical Engine in 1837.",
    }
    found = summary_of("fine", MEMBERS, [chunk("c1", "d1", 0, 2), chunk("c2", "d2", 1, 2)], texts)
    assert [(each.text, each.chunk_id, each.document_id) for each in found] == [
        ("Ada Lovelace wrote about the Analytical Engine.", "c1", "d1"),
        ("Charles Babbage designed the Analytical Engine in 1837.", "c2", "d2"),
    ]


def test_what_is_known_already_counts_little_beside_what_is_new() -> None:
    texts = {
        "c1": "Ada Lovelace met Charles Babbage in London.",
        "c2": "Charles Babbage met Ada Lovelace in Oxford.",
        "c3": "The Analytical Engine was never finished.",
    }
    less_known = [ADA, BABBAGE, Member(ENGINE.entity, ENGINE.label, ENGINE.type, 2.5)]  # 2.5 > (4 + 3) x 0.3
    chunks = [chunk("c1", "d1", 0, 1), chunk("c2", "d2", 0, 1), chunk("c3", "d3", 2)]
    found = summary_of("fine", less_known, chunks, texts)
    assert [each.chunk_id for each in found] == ["c1", "c3"], "the third would name nobody new"


def test_at_most_two_sentences_of_one_document_and_none_twice() -> None:
    texts = {f"c{number}": f"Ada Lovelace wrote note number {number} at home." for number in range(4)}
    texts["c9"] = texts["c0"]
    chunks = [*(chunk(f"c{number}", "d1", 0) for number in range(4)), chunk("c9", "d2", 0)]
    found = summary_of("coarse", [ADA], chunks, texts)
    assert [each.document_id for each in found] == ["d1", "d1"]
    assert len({each.text for each in found}) == 2


def test_names_are_whole_words_and_chunks_that_are_gone_say_nothing() -> None:
    rust = Member("6" * 32, "Rust", "product", 1.0)
    texts = {"c1": "Trust in people is what makes a team succeed."}
    assert summary_of("fine", [rust], [chunk("c1", "d1", 0), chunk("gone", "d2", 0)], texts) == ()
