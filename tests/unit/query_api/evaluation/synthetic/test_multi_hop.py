"""Questions of a link, from a few made-up articles: which sentences can be asked with, and how B is left out."""

import random

import pytest

from query_api.evaluation.synthetic.multi_hop import by_link, kinds_of, resembles_name
from query_api.evaluation.synthetic.source import GeneratedQuestion, IndexedDocument, Source, Vocabulary, words

SEEDS = range(6)


def article(title: str, text: str, *links: str) -> IndexedDocument:
    return IndexedDocument(id=title, title=title, text=text, names=(title,), fields={}, relations=(), links=links)


TOWNS = [
    article(name, f"{name} is a harbour town on the {sea} coast.")
    for name, sea in (("Vardholm", "northern"), ("Elsby", "eastern"), ("Quin", "western"), ("Tarn", "southern"))
]
VARDHOLM = article("Vardholmia", "Vardholmia is a harbour town that was built twice.")


def asked(*articles: IndexedDocument) -> list[GeneratedQuestion]:
    """Every question that some seed makes of these articles and of four towns, five with `Vardholmia`."""
    documents = (*articles, *TOWNS, VARDHOLM)
    source = Source(documents, Vocabulary(documents), {each.id: each for each in documents})
    return [made for seed in SEEDS for made in by_link(source, random.Random(seed))]


def told(sentence: str, *links: str, title: str = "Herring trade") -> IndexedDocument:
    return article(title, sentence, *(links or ("Elsby",)))


def test_a_thing_is_asked_for_by_what_its_own_text_says_it_is() -> None:
    """Five texts begin with `is a harbour town`; the name is nowhere in the question."""
    made = asked(told("Salted herring was carried in oak barrels from Elsby across the whole kingdom."))
    assert made
    for each in made:
        assert "barrels from this harbour town across" in each.text
        assert "Which harbour town is" in each.text
        assert "Elsby" not in each.text
        assert dict(each.gold) == {"Elsby": 1}
        assert (each.path[0].source, each.path[0].target) == ("Herring trade", "Elsby")


def test_what_few_texts_call_a_kind_leaves_a_blank() -> None:
    odd = article("Brom", "Brom is a lighthouse of red brick.")
    made = asked(told("Salted herring was carried in oak barrels from Brom across the whole kingdom.", "Brom"), odd)
    assert made
    assert all("barrels from ___ across" in each.text for each in made)


def test_a_kind_is_no_word_that_says_nothing_and_has_five_holders() -> None:
    members = [article(f"Member {at}", f"Member {at} is a member of the northern league.") for at in range(6)]
    documents = (*members, *TOWNS, VARDHOLM)
    kinds = kinds_of(Source(documents, Vocabulary(documents), {each.id: each for each in documents}))
    assert set(kinds.values()) == {"harbour town"}
    assert "Member 0" not in kinds
    four = kinds_of(Source(TOWNS, Vocabulary(TOWNS), {each.id: each for each in TOWNS}))
    assert not four


@pytest.mark.parametrize(
    "sentence",
    [
        "Salted herring was carried in barrels of oak from Elsby City across the whole kingdom.",  # another's name
        "Salted herring was carried in barrels of oak from Saint Elsby across the whole kingdom.",
        "Salted herring was carried in barrels of oak to Elsby of the Isles across the kingdom.",
        "Salted herring was carried in barrels of oak from Brom and Elsby across the whole kingdom.",  # one of a list
        "Salted herring was carried in barrels of oak from Elsby, Brom and Wick across the kingdom.",
        "Salted herring from Elsby was carried in oak barrels, and Elsby grew rich on that trade.",  # named twice
        "Elsby salted herring, and carried it in oak barrels across the whole kingdom.",  # a beginning says no case
        "Herring came from Elsby in barrels.",  # too short to be asked with
        "carried in barrels of oak from Elsby across the whole kingdom, as salted herring was.",  # not whole
        "Salted herring was carried by `barrels(oak)` from Elsby across the whole kingdom.",  # code
    ],
)
def test_a_sentence_that_does_not_tell_which_one_is_not_asked_with(sentence: str) -> None:
    assert not asked(told(sentence))


def test_a_sentence_that_is_not_enough_says_whose_text_it_is_from() -> None:
    leaning = told("It was carried in oak barrels from Elsby across the whole kingdom.")
    assert all("Herring trade" in each.text for each in asked(leaning)), "it speaks of no herring"
    own = told("Salted herring was carried in oak barrels from Elsby across the whole kingdom.")
    assert all("Herring trade" not in each.text for each in asked(own))
    elsewhere = article(
        "Herring fleet", "Salted herring was carried far in barrels made from oak across a whole kingdom."
    )
    assert all("Herring trade" in each.text for each in asked(own, elsewhere)), "the words are those of two texts"


def test_a_word_formed_like_the_name_gives_it_away() -> None:
    sweden, italy = article("Sweden", ""), article("Italy", "")
    assert resembles_name(sweden, "the Swedish coast")
    assert resembles_name(italy, "an Italian town")
    assert not resembles_name(sweden, "sweet herring")
    assert not asked(told("Salted herring was carried by Elsbian boats from Elsby across the whole kingdom."))


def test_each_thing_is_asked_for_once_and_never_where_two_have_its_name() -> None:
    one = told("Salted herring was carried in oak barrels from Elsby across the whole kingdom.")
    two = told("Rope of hemp was wound by hand in long sheds near Elsby for three centuries.", title="Ropes")
    documents = (one, two, *TOWNS, VARDHOLM)
    source = Source(documents, Vocabulary(documents), {each.id: each for each in documents})
    assert len(list(by_link(source, random.Random(1)))) == 1
    twin = IndexedDocument(
        id="Elsby (ship)",
        title="Elsby (ship)",
        text="A ship.",
        names=("Elsby (ship)", "Elsby"),
        fields={},
        relations=(),
        links=(),
    )
    assert not asked(one, twin)


def test_no_question_holds_a_word_that_names_its_answer() -> None:
    made = asked(told("Salted herring was carried in oak barrels from Quin across the whole kingdom.", "Quin"))
    assert made
    assert all("quin" not in words(each.text) for each in made)
