"""How often words stand in lower case, inside sentences of several corpora."""

from training.count_word_use import lower_case_shares, word_counts


def test_only_words_inside_a_sentence_count() -> None:
    assert word_counts(iter(["Boats sail, Boats sink. Boats rest"])) == {"sail": 1, "Boats": 1, "sink": 1, "rest": 1}


def test_the_share_of_a_stem_is_over_its_forms_and_all_corpora() -> None:
    counts = [word_counts(iter([text])) for text in ("a boat and boats", "an old boat, a Boat", "the old Omsk")]
    assert lower_case_shares(counts)["boat"] == 75  # three of four
    assert "omsk" not in lower_case_shares(counts)


def test_what_is_seldom_in_lower_case_or_rare_is_left_out() -> None:
    often = "a boat " * 3 + "a Boat " * 9
    assert lower_case_shares([word_counts(iter([often]))]) == {}
    assert lower_case_shares([word_counts(iter(["a boat, a boat"]))]) == {}
