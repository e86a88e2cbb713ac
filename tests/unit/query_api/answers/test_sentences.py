"""What an answer is chosen from: sentences word for word, each once, none too long."""

from query_api.answers.sentences import HITS as MOST_HITS
from query_api.answers.sentences import MOST_SENTENCES, sentences_of_hits
from tests.unit.query_api.answers.found import HITS, QUESTION, hit, idf_of


def test_sentences_are_word_for_word_what_the_passage_has() -> None:
    for sentence in sentences_of_hits(HITS, idf_of(QUESTION), 65):
        assert HITS[sentence.hit].parent_text[sentence.start : sentence.end] == sentence.text


def test_a_sentence_that_two_hits_have_comes_once() -> None:
    twice = [hit(1, "A", "The tide turns at noon. Boats leave."), hit(2, "B", "The  tide turns at NOON.")]
    assert [each.text for each in sentences_of_hits(twice, {}, 65)] == ["The tide turns at noon.", "Boats leave."]


def test_a_sentence_without_an_end_is_cut_between_two_words() -> None:
    (sentence,) = sentences_of_hits([hit(1, "Log", "word " * 5_000)], {}, 65)
    assert sentence.words == 65
    assert sentence.text == ("word " * 65).rstrip()


def test_rules_and_numbers_are_no_sentences() -> None:
    assert sentences_of_hits([hit(1, "Table", "-----\n12 13 14\n")], {}, 65) == []


def test_there_are_bounds() -> None:
    long = [hit(rank, f"Page {rank}", " ".join(f"Line {rank} {n} is here." for n in range(60))) for rank in range(1, 9)]
    found = sentences_of_hits(long, {}, 65)
    assert len(found) == MOST_SENTENCES
    assert max(each.hit for each in found) < MOST_HITS
