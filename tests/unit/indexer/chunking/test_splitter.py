"""Passages and chunks: covered once, bounded, inside their section, stable."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.chunking.splitter import ChunkingParameters, chunk, sentences_by_section
from indexer.documents import ChunkedDocument, Figure, ParsedDocument, Section
from indexer.parsing import parse
from schemas.curation import ChunkingChoice
from schemas.ids import DocumentKey

KEY = DocumentKey("default", "rivers")
DEFAULTS = ChunkingParameters()
SENTENCES = [f"Sentence number {number} says that river {number} flows to the sea in its bed." for number in range(120)]
LONG = " ".join(SENTENCES)


def document(text: str, *, sections: list[Section] | None = None, figures: tuple[Figure, ...] = ()) -> ParsedDocument:
    return ParsedDocument(
        title=None, text=text, sections=tuple(sections or [Section((), 0, len(text))]), figures=figures
    )


def check(parsed: ParsedDocument, parameters: ChunkingParameters, boundaries: Sequence[int] = ()) -> ChunkedDocument:
    """What holds for every document."""
    chunked = chunk(KEY, parsed, parameters, boundaries=boundaries)
    for one in (*chunked.passages, *chunked.chunks):
        section = parsed.sections[one.section]
        assert section.start <= one.start < one.end <= section.end
        assert parsed.text[one.start : one.end] == one.text
        assert not one.text[0].isspace()
        assert not one.text[-1].isspace()
    assert [one.ordinal for one in chunked.passages] == list(range(len(chunked.passages)))
    assert [one.ordinal for one in chunked.chunks] == list(range(len(chunked.chunks)))
    assert len({one.id for one in chunked.chunks}) == len(chunked.chunks)
    assert len({one.id for one in chunked.passages}) == len(chunked.passages)
    for child in chunked.chunks:
        parent = chunked.passages[child.passage]
        assert parent.section == child.section
        assert parent.start <= child.start < child.end <= parent.end
        assert len(child.text) <= parameters.longest_chunk
    for parent in chunked.passages:
        assert len(parent.text) <= parameters.passage_characters + parameters.longest_chunk
        assert any(child.passage == parent.ordinal for child in chunked.chunks)
    check_cover(parsed, chunked, parameters)
    return chunked


def check_cover(parsed: ParsedDocument, chunked: ChunkedDocument, parameters: ChunkingParameters) -> None:
    """Children hold every visible character of a section; neighbours share no more than the overlap."""
    for index, section in enumerate(parsed.sections):
        children = [child for child in chunked.chunks if child.section == index]
        reached = section.start
        for child in children:
            assert reached - child.start <= parameters.chunk_overlap
            assert not parsed.text[reached : child.start].strip()
            assert child.end > reached
            reached = child.end
        assert not parsed.text[reached : section.end].strip()


def test_children_are_about_300_characters_and_end_with_a_sentence() -> None:
    chunked = check(document(LONG), DEFAULTS)
    sizes = [len(child.text) for child in chunked.chunks]
    assert 220 <= sum(sizes) / len(sizes) <= 340
    assert all(child.text.endswith(".") for child in chunked.chunks)


def test_neighbouring_children_share_about_50_characters_from_a_word_on() -> None:
    chunked = check(document(LONG), DEFAULTS)
    inside = [
        (before, after)
        for before, after in zip(chunked.chunks, chunked.chunks[1:], strict=False)
        if before.passage == after.passage
    ]
    assert inside
    for before, after in inside:
        assert 35 <= before.end - after.start <= 50
        assert LONG[after.start - 1] == " "


def test_parents_overlap_by_whole_sentences_and_their_children_do_not_repeat() -> None:
    chunked = check(document(LONG), DEFAULTS)
    assert len(chunked.passages) > 3
    for before, after in zip(chunked.passages, chunked.passages[1:], strict=False):
        assert 0 < before.end - after.start <= DEFAULTS.passage_overlap_characters
        assert after.text.startswith("Sentence number")
    words = re.findall(r"number (\d+)", " ".join(child.text[50:] for child in chunked.chunks))
    assert len(words) <= len(SENTENCES)


def test_chunks_and_passages_end_where_the_text_turns_and_take_nothing_over_it() -> None:
    usual = check(document(LONG), DEFAULTS)
    boundaries = [2, 15, 30]
    semantic = check(document(LONG), DEFAULTS, boundaries)
    starts = [LONG.index(SENTENCES[turn]) for turn in boundaries]
    assert set(starts) <= {child.start for child in semantic.chunks}
    assert set(starts[1:]) <= {passage.start for passage in semantic.passages}
    assert not set(starts) <= {child.start for child in usual.chunks}


def test_a_turn_in_another_section_is_counted_on() -> None:
    parsed = parse(f"# A\n\n{' '.join(SENTENCES[:4])}\n\n# B\n\n{' '.join(SENTENCES[4:8])}".encode(), "text/markdown")
    assert [len(section) for section in sentences_by_section(parsed, DEFAULTS)] == [4, 4]
    chunked = check(parsed, DEFAULTS, [6])
    assert any(child.text.startswith("Sentence number 6") for child in chunked.chunks)


def test_a_collection_may_choose_some_of_the_sizes() -> None:
    chosen = DEFAULTS.with_choice(ChunkingChoice(parent_characters=600, parent_overlap=200, method="semantic"))
    assert (chosen.passage_characters, chosen.chunk_characters, chosen.method) == (600, 300, "semantic")
    assert chosen.passage_overlap_characters == 200
    assert DEFAULTS.with_choice(ChunkingChoice()) == DEFAULTS
    assert DEFAULTS.passage_overlap_characters == 210


@pytest.mark.parametrize("overlap", range(0, 351, 7))
def test_an_overlap_in_characters_is_kept_to_the_character(overlap: int) -> None:
    chosen = DEFAULTS.with_choice(ChunkingChoice(parent_characters=701, parent_overlap=overlap))
    assert chosen.passage_overlap_characters == overlap


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        (ChunkingChoice(parent_characters=500), "too small for children of 300"),
        (ChunkingChoice(child_characters=1_000), "too small for children of 1,000"),
        (ChunkingChoice(parent_overlap=1_400), "at most half of parent_characters, which is 1,400"),
        (ChunkingChoice(child_overlap=300), "at most half of child_characters, which is 300"),
    ],
)
def test_sizes_that_do_not_fit_together_are_refused_in_the_words_of_who_chose(
    choice: ChunkingChoice, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        DEFAULTS.with_choice(choice)


def test_a_parent_carries_no_figure_over() -> None:
    figure_text = "A map of the bed.\n\nFigure 1: The bed in spring."
    carried_where_it_is_not_known = 0
    for before in range(8, 60):
        text = "\n\n".join((" ".join(SENTENCES[:before]), figure_text, " ".join(SENTENCES[before:80])))
        start = text.index(figure_text)
        figure = Figure(start, start + len(figure_text), "Figure 1: The bed in spring.")
        for figures in ((figure,), ()):
            chunked = check(document(text, figures=figures), DEFAULTS)
            holding = [one for one in chunked.passages if one.start < figure.end and one.end > figure.start]
            if figures:
                assert len(holding) == 1
            else:
                carried_where_it_is_not_known += len(holding) - 1
    assert carried_where_it_is_not_known


def test_no_chunk_crosses_a_section_however_small() -> None:
    parsed = parse(b"# A\n\nShort.\n\n## B\n\nAlso.\n\n## C\n\nx", "text/markdown")
    chunked = check(parsed, DEFAULTS)
    assert [child.text for child in chunked.chunks] == ["Short.", "Also.", "x"]
    assert [parsed.sections[child.section].headings for child in chunked.chunks] == [("A",), ("A", "B"), ("A", "C")]


def test_a_tiny_end_joins_the_chunk_before_it() -> None:
    chunked = check(document(" ".join(SENTENCES[:4]) + "\n\nThe end."), DEFAULTS)
    assert [child.text.endswith("The end.") for child in chunked.chunks] == [True]


def test_a_child_ends_where_its_paragraph_ends() -> None:
    paragraph = " ".join(SENTENCES[:4])
    chunked = check(document(f"{paragraph}\n\n{paragraph}"), DEFAULTS)
    assert chunked.chunks[0].text == paragraph


def test_ids_are_computed_and_survive_changes_elsewhere() -> None:
    before = parse(b"# A\n\nFirst words.\n\n# B\n\nSecond words.", "text/markdown")
    after = parse(b"# A\n\nFirst words, changed.\n\n# B\n\nSecond words.", "text/markdown")
    one, again, changed = (chunk(KEY, parsed, DEFAULTS) for parsed in (before, before, after))
    assert one == again
    assert one.chunks[0].id != changed.chunks[0].id
    assert one.chunks[1].id == changed.chunks[1].id
    assert one.passages[1].id == changed.passages[1].id
    other = chunk(DocumentKey("default", "other"), before, DEFAULTS)
    assert not {child.id for child in one.chunks} & {child.id for child in other.chunks}


def test_the_same_words_twice_are_two_chunks() -> None:
    parsed = parse(b"# A\n\nSame.\n\n# A\n\nSame.", "text/markdown")
    check(parsed, DEFAULTS)


@pytest.mark.processor_seconds(60)
@pytest.mark.parametrize("text", ["x" * 20_000_000, "[" * 100_000, "a. " * 100_000, "y\n" * 100_000])
def test_work_and_sizes_are_bounded_on_any_line(text: str) -> None:
    chunked = chunk(KEY, document(text.strip()), DEFAULTS)
    assert max(len(child.text) for child in chunked.chunks) <= DEFAULTS.longest_chunk
    assert max(len(parent.text) for parent in chunked.passages) <= DEFAULTS.passage_characters + DEFAULTS.longest_chunk


@pytest.mark.parametrize(
    "change",
    [{"chunk_characters": 0}, {"chunk_overlap": 200}, {"passage_characters": 400}, {"passage_overlap": 0.9}],
)
def test_sizes_that_make_no_sense_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="overlap"):
        replace(DEFAULTS, **change)


words = st.text(alphabet=st.sampled_from("abcdé😀"), min_size=1, max_size=12)
lines = st.lists(
    st.one_of(words, st.sampled_from([".", "x" * 90, "end. ", "\n", "\n\n", "- ", "“", "e.g."])), max_size=120
)
parameter_sets = st.builds(
    ChunkingParameters,
    chunk_characters=st.integers(20, 80),
    chunk_overlap=st.integers(0, 10),
    passage_characters=st.integers(160, 400),
    passage_overlap=st.floats(0, 0.5),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(lines, min_size=1, max_size=3), parameter_sets, st.data())
def test_any_text_is_covered_once_in_bounded_chunks(
    parts: list[list[str]], parameters: ChunkingParameters, data: st.DataObject
) -> None:
    text, sections = "", []
    for part in parts:
        content = " ".join(part).strip()
        if content:
            text += f"Heading {len(sections)}\n\n"
            sections.append(Section((f"Heading {len(sections)}",), len(text), len(text) + len(content)))
            text += content + "\n\n"
    if not sections:
        return
    starts = data.draw(st.lists(st.integers(0, len(text) - 1), max_size=3))
    figures = tuple(Figure(start, min(start + 30, len(text)), "Figure 1") for start in starts)
    boundaries = data.draw(st.lists(st.integers(0, 60), max_size=6))
    check(document(text, sections=sections, figures=figures), parameters, boundaries)
