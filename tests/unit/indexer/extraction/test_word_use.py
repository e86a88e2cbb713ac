"""Which words are common, in edited prose and in one document."""

from indexer.extraction.word_use import WordUse, is_common_word, lower_case_shares


def test_a_capital_for_its_place_makes_no_name() -> None:
    use = WordUse(["The worker waits. A worker is a stone."])
    assert use.may_be_common("Worker")
    assert use.may_be_common("The Worker")
    assert use.may_be_common("Ingestion")  # by its ending
    assert not use.may_be_common("Omsk")
    assert not use.may_be_common("Omsk Worker")
    assert use.may_be_common("WORKER")  # stressed
    assert not use.may_be_common("STONE")  # as short as names in code
    assert not use.may_be_common("1998")


def test_a_word_is_common_in_whichever_form_it_stands() -> None:
    use = WordUse(["We search and patch it."])
    assert use.may_be_common("Patches")
    assert use.may_be_common("Search Patches")
    assert not use.may_be_common("Lisbon Patches")


def test_words_that_prose_has_in_lower_case_are_common() -> None:
    use = WordUse([])
    assert use.is_common("Configuration")
    assert use.is_common("The Local Settings")
    assert use.is_common("Option B")
    assert not use.is_common("Linux Settings")
    assert not use.is_common("Black")  # a name as often
    assert not use.is_common("int8")
    assert not use.is_common("Content-Type")
    assert is_common_word("the")
    assert is_common_word("Settings")
    assert not is_common_word("Omsk")


def test_words_are_common_that_a_document_has_mostly_in_lower_case() -> None:
    assert WordUse(["then the iterable yields, and an iterable ends"]).is_common("Iterable")
    assert not WordUse(["then Heron yields, and the heron ends"]).is_common("Heron")
    assert WordUse(["with boats and boats, and a Boat"]).times_in_lower_case("Boat") == 2


def test_a_text_is_technical_by_its_code() -> None:
    prose = "They went to the river with their boats and came back when it was dark. " * 10
    assert not WordUse([prose]).is_technical
    assert WordUse([prose, "call boat_rate() and waveCount, then see boats.speed"]).is_technical
    assert WordUse([prose], has_code=True).is_technical


def test_the_shipped_list_has_shares() -> None:
    shares = lower_case_shares()
    assert len(shares) > 1000
    assert all(0 < share <= 1 for share in shares.values())
