"""Which sentences answer: the set that most likely holds it within the words, in the order of a chain."""

import numpy as np
import pytest

from query_api.answers.composition import choose, in_order, with_definitions, without_fragments
from query_api.answers.extract import extract
from query_api.answers.features import AskedFor, Titles
from query_api.answers.sentences import Sentence, TermIdf, sentences_of_hits
from query_api.query.analysis import Question
from tests.unit.query_api.answers.found import HITS, QUESTION, hit, idf_of


def sentence(words: int, hit: int = 0) -> Sentence:
    return Sentence(hit, 0, 0, 0, " ".join(["word"] * words), frozenset())


def likely(*values: float) -> np.ndarray:
    return np.array([(value, 0.0) for value in values])


def test_one_long_sentence_does_not_keep_out_two_that_are_likelier_together() -> None:
    sentences = [sentence(60), sentence(30), sentence(30)]
    assert sorted(choose(sentences, likely(0.5, 0.4, 0.4), 3, 65)) == [1, 2]
    assert choose(sentences, likely(0.9, 0.4, 0.4), 3, 65) == [0]


def test_what_is_far_less_likely_than_the_best_is_left_out() -> None:
    assert choose([sentence(5)] * 3, likely(0.9, 0.5, 0.1), 3, 65) == [0, 1]


@pytest.mark.parametrize("most", [1, 2, 3, 5, 10])
def test_neither_sentences_nor_words_are_more_than_asked(most: int) -> None:
    sentences = [sentence(10 + number) for number in range(12)]
    chosen = choose(sentences, likely(*np.linspace(0.3, 0.6, 12)), most, 50)
    assert 0 < len(chosen) <= most
    assert len(set(chosen)) == len(chosen)
    assert sum(sentences[at].words for at in chosen) <= 50


@pytest.mark.parametrize(
    ("question", "defined"),
    [
        ("What is photosynthesis?", True),
        ("define Photosynthesis", True),
        ("What is the photosynthesis", True),
        ("Where is photosynthesis?", False),
        ("What is photosynthesis good for?", False),
    ],
)
def test_a_definition_answers_what_something_is(question: str, *, defined: bool) -> None:
    text = "The leaf is where it happens. Photosynthesis (Greek, light) is how plants make sugar. So it goes."
    hits = [hit(1, "Photosynthesis", text), hit(2, "Leaf", "A leaf is green.")]
    idf = idf_of(question)
    sentences = sentences_of_hits(hits, idf, 65)
    before = likely(0.3, 0.2, 0.1, 0.3)
    after = with_definitions(Question(question), sentences, before, Titles.of(Question(question), hits, idf))
    assert after[:, 0].tolist() == [0.3, 0.9 if defined else 0.2, 0.1, 0.3]


@pytest.mark.parametrize(
    ("question", "text", "share"),
    [
        ("What is proposed?", "Proposed: Sentinel Values", 0.5),
        ("What is proposed?", "Title: Sentinel Values", 0.1),
        ("What is proposed?", "status: draft.", 0.1),
        ("What is the status?", "status: draft.", 1.0),
        ("What is proposed?", "The title is “Sentinel Values.”", 1.0),
        ("What is proposed?", "Two were proposed: sentinels and values.", 1.0),
        ("什么？", "这是一条河。", 1.0),
        ("When is the release?", "- final: 2025-10-07", 1.0),
        ("When is the release?", "Release schedule", 0.5),
        ("When is the release?", "stage | date |", 0.1),
        ("How wide is the release?", "release | 3 mm", 1.0),
        ("Who wrote it?", "Author: Jane Ann Doe", 0.5),
        ("Who wrote Hamlet?", "Fig. 3: The ghost of Hamlet.", 0.5),
        ("Who wrote Hamlet?", "Title page of a quarto", 0.1),
        ("Who painted the ghost?", "Figure 3 shows that Hamlet's ghost was painted.", 1.0),
    ],
)
def test_what_is_no_sentence_counts_less(question: str, text: str, share: float) -> None:
    hits, idf = [hit(1, "Notes", text)], idf_of(question)
    sentences = sentences_of_hits(hits, idf, 65)
    titles = Titles.of(Question(question), hits, idf)
    after = without_fragments(AskedFor.by(Question(question)), sentences, likely(0.6), titles)
    assert after.tolist() == (likely(0.6) * share).tolist()


def test_a_caption_with_no_more_of_the_question_than_its_title_gives_way_to_a_sentence() -> None:
    text = "The ghost by Fuseli, about Hamlet\nHe wrote this play about Hamlet around 1600."
    hits, idf = [hit(1, "Hamlet", text)], idf_of("Who wrote Hamlet?")
    sentences = sentences_of_hits(hits, idf, 65)
    titles = Titles.of(Question("Who wrote Hamlet?"), hits, idf)
    after = without_fragments(AskedFor.by(Question("what about Hamlet")), sentences, likely(0.6, 0.6), titles)
    assert after[:, 0].tolist() == [pytest.approx(0.06), 0.6]


def test_nothing_found_is_nothing_chosen() -> None:
    assert choose([], np.zeros((0, 2)), 3, 65) == []


def test_a_chain_begins_where_the_question_does_and_follows_titles() -> None:
    reversed_hits = [HITS[2], HITS[1], HITS[0]]
    idf = idf_of(QUESTION)
    titles = Titles.of(Question(QUESTION), reversed_hits, idf)
    sentences = sentences_of_hits(reversed_hits, idf, 65)
    order = in_order(sentences, titles)
    assert [reversed_hits[sentences[at].hit].title for at in order][::2] == ["Alpha Film", "Jane Doe", "Beta Film"]


def test_titles_that_name_each_other_are_no_endless_chain() -> None:
    circle = [
        hit(1, "North Pier", "North Pier faces South Pier."),
        hit(2, "South Pier", "South Pier faces North Pier."),
    ]
    titles = Titles.of(Question("piers"), circle, {})
    assert in_order(sentences_of_hits(circle, {}, 65), titles) == [0, 1]


@pytest.mark.parametrize(
    ("question", "title", "text", "chosen"),
    [
        ("What is a kiln?", "Ovens", "Ovens are hot. A kiln is an oven that fires clay.", 1),
        ("What is a kiln?", "Kiln: a guide", "People like clay. A kiln fires clay. A kiln is hot.", 2),
        ("What is PEP 7?", "PEP 7 – Birds", "Birds fly. This PEP describes birds.", 1),
        ("What is PEP 7?", "PEP 7 – Birds", "PEP: 7\nTitle: Birds\nStatus: Final", 1),
        ("What is PEP 7?", "PEP 7 – Birds", "This document has been placed here. This proposal adds birds.", 1),
    ],
)
def test_a_defining_sentence_is_taken_to_answer(question: str, title: str, text: str, chosen: int) -> None:
    hits = [hit(1, title, text)]
    asked = Question(question)
    sentences = sentences_of_hits(hits, idf_of(question), 65)
    raised = with_definitions(
        asked, sentences, np.full((len(sentences), 2), 0.1), Titles.of(asked, hits, idf_of(question))
    )
    assert raised[:, 0].argmax() == chosen
    assert raised[chosen, 0] >= 0.8


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("def f(x: int) -> str: ...", 0.1),
        (">>> f'Useless lambda: { lambda x: x*2 }'", 0.1),
        ("The lambda `foo(x)` is short.", 1.0),
        ("- Verify!", 0.1),
        ("吾輩は猫である。", 1.0),
    ],
)
def test_code_and_single_words_count_less(text: str, share: float) -> None:
    question = Question("What is a lambda?")
    hits = [hit(1, "Functions", text)]
    sentences = sentences_of_hits(hits, idf_of(question.text), 65)
    titles = Titles.of(question, hits, idf_of(question.text))
    assert without_fragments(AskedFor.by(question), sentences, np.ones((1, 2)), titles).max() == share


def test_what_documents_repeat_gives_way() -> None:
    question = "What is Python used for?"
    licence, use = "This Python page is in the public domain.", "Scripts and science run on it."
    hits = [hit(1, "Python", f"{licence} {use}")]
    weights = TermIdf(idf_of(question), 5.0)

    def texts(repeats: int) -> list[str]:
        found = extract(
            Question(question), hits, weights, most_sentences=1, most_words=65,
            repeats=lambda text: repeats if text == licence else 1,
        )  # fmt: skip
        return [found.sentences[at].text for at in found.chosen]

    assert texts(1) == [licence]
    assert texts(3) == [use]
