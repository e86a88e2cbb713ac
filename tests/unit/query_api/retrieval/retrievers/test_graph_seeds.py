"""Which passages become seeds, for how much they count, and which names their sentences hold."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from query_api.index.graph.view import GraphView
from query_api.index.snapshot import PassageReader
from query_api.query.analysis import Question, WordWeights
from query_api.query.entity_linking import QueryLink
from query_api.retrieval.retrievers.graph_edges import Seed
from query_api.retrieval.retrievers.graph_seeds import ChosenSeeds, PassageNumbers, choose_seeds, read_seeds
from tests.unit.query_api.in_memory_text import Page, world

LETTERS = [Page(letter, f"Page {letter}", [[f"Text of {letter}."]]) for letter in "abcdefgh"]


def choose(view: GraphView, links: Sequence[QueryLink], fitting: Mapping[str, float]) -> ChosenSeeds:
    return choose_seeds(view, PassageNumbers(view), links, fitting)


class Lettered:
    """A view of pages that are called by letters."""

    def __init__(self) -> None:
        self.view: GraphView = world(LETTERS)[0].graph

    def link(self, letter: str, strength: float) -> QueryLink:
        document = self.view.document(LETTERS["abcdefgh".index(letter)].key)
        assert document is not None
        return QueryLink(letter, 1, document, strength)

    def chosen(self, fitting: dict[str, float], *links: QueryLink) -> list[tuple[str, float]]:
        ids = {page.id: page.passage_ids()[0] for page in LETTERS}
        of_text = {ids.get(letter, "f" * 32): score for letter, score in fitting.items()}
        chosen = choose(self.view, links, of_text)
        letters = {self.view.passage_id(passage): passage for passage in chosen.weights}
        return [
            (letter, chosen.weights[letters[identifier]])
            for identifier in letters
            for letter, own in ids.items()
            if own == identifier
        ]


def test_the_best_three_by_their_text_are_seeds_relative_to_the_best() -> None:
    assert Lettered().chosen({"a": 0.8, "b": 0.4, "c": 0.6, "d": 0.2}) == [
        ("a", 1.0),
        ("c", pytest.approx(0.75)),
        ("b", pytest.approx(0.5)),
    ]


def test_what_does_not_fit_or_is_not_in_the_graph_yet_is_no_seed() -> None:
    assert Lettered().chosen({"unknown": 0.9, "a": 0.45, "b": 0.0, "c": -0.1}) == [("a", 1.0)]
    assert Lettered().chosen({}) == []


def test_a_name_in_the_question_lifts_what_it_leads_to() -> None:
    """d: .7 + .3 x .4 = .82 is above c; it counts by that, relative to the best."""
    world_of_letters = Lettered()
    fitting = {"a": 1.0, "b": 0.9, "c": 0.8, "d": 0.7}
    assert world_of_letters.chosen(fitting, world_of_letters.link("d", 0.4)) == [
        ("a", 1.0),
        ("b", pytest.approx(0.9)),
        ("d", pytest.approx(0.82)),
    ]


def test_a_seed_counts_for_as_much_as_its_name_is_sure() -> None:
    world_of_letters = Lettered()
    chosen = world_of_letters.chosen({"a": 1.0, "b": 0.2}, world_of_letters.link("b", 0.8))
    assert chosen == [("a", 1.0), ("b", pytest.approx(0.8))], "not .2 + .3 x .8"


def test_up_to_three_more_are_seeds_by_a_sure_name_and_none_by_an_unsure_one() -> None:
    world_of_letters = Lettered()
    fitting = {"a": 1.0, "b": 0.9, "c": 0.8}
    sure = [
        world_of_letters.link(letter, strength) for letter, strength in zip("hgfe", (0.5, 0.6, 0.7, 0.8), strict=True)
    ]
    chosen = world_of_letters.chosen(fitting, *sure, world_of_letters.link("d", 0.49))
    assert chosen[3:] == [("e", pytest.approx(0.8)), ("f", pytest.approx(0.7)), ("g", pytest.approx(0.6))]
    assert len(world_of_letters.chosen(fitting, world_of_letters.link("d", 0.49))) == 3


def test_a_question_of_names_alone_has_seeds_too() -> None:
    world_of_letters = Lettered()
    chosen = world_of_letters.chosen({}, world_of_letters.link("b", 1.0), world_of_letters.link("c", 0.6))
    assert chosen == [("b", 1.0), ("c", pytest.approx(0.6))]


def read(pages: list[Page], question: str = "What?") -> tuple[GraphView, Seed]:
    """The first page as the only seed; every word of the question weighs the same."""
    snapshot, text, _ = world(pages)
    asked = Question(question)
    weights = WordWeights.of(asked, lambda words: [1.0] * len(words))
    chosen = choose(snapshot.graph, [], {pages[0].passage_ids()[0]: 1.0})
    [seed] = read_seeds(asked, snapshot.graph, PassageReader(text), weights, chosen)
    return snapshot.graph, seed


def names_of(seed: Seed) -> list[str]:
    return sorted(name for sentence in seed.sentences for name in sentence.names)


SONG = Page("song", "A song", [["It is from the album Kiss and Tell."]], ["Kiss and Tell", "Kiss", "Tell"])
KISS = Page("kiss", "Kiss", [["A band."]])
KISS_AND_TELL = Page("album", "Kiss and Tell", [["An album."]])


def test_a_name_takes_its_words_only_once() -> None:
    _, seed = read([SONG, KISS, KISS_AND_TELL])
    assert names_of(seed) == ["kiss and tell"]
    assert [held.name for held in seed.entities.values()] == ["kiss and tell"]


def test_a_shorter_name_stands_where_it_stands_by_itself() -> None:
    both = Page("song", "A song", [["Kiss made the album Kiss and Tell."]], ["Kiss and Tell", "Kiss"])
    _, seed = read([both, KISS, KISS_AND_TELL])
    assert names_of(seed) == ["kiss", "kiss and tell"]


def test_a_title_takes_its_words_before_a_longer_name_that_nobody_else_mentions() -> None:
    lone = Page("song", "A song", [["It was sung by Kiss Army."]], ["Kiss Army", "Kiss"])
    assert names_of(read([lone, KISS])[1]) == ["kiss"]
    fans = Page("fans", "Fans", [["The Kiss Army is loud."]], ["Kiss Army"])
    assert names_of(read([lone, KISS, fans])[1]) == ["kiss"], "a title comes before what others mention"
    assert names_of(read([lone, fans])[1]) == ["kiss army"], "what others mention comes before what they do not"


def test_an_entity_is_worth_what_its_best_sentence_covers_of_the_question() -> None:
    """Both words: .3 + .7 x 1; one of two: .3 + .7 x .5; none: .3."""
    page = Page(
        "film",
        "Film",
        [["The director was Ann Lee. The director married Bo Ek in Rome. She was born in Rome as director."]],
        ["Ann Lee", "Bo Ek", "Rome", "Film"],
    )
    _, seed = read([page], "Which director was born?")
    held = {held.name: held.value for held in seed.entities.values()}
    assert held == {
        "ann lee": pytest.approx(0.65),
        "bo ek": pytest.approx(0.65),
        "rome": pytest.approx(1.0),
    }
    assert [sentence.share for sentence in seed.sentences][-3:] == [0.5, 0.5, 1.0]


def test_a_seed_whose_text_is_gone_is_left_out() -> None:
    snapshot, text, _ = world(LETTERS)
    chosen = choose_seeds(
        snapshot.graph,
        PassageNumbers(snapshot.graph),
        [],
        {LETTERS[0].passage_ids()[0]: 1.0, LETTERS[1].passage_ids()[0]: 0.5},
    )
    text.pages = {page.key: page for page in LETTERS[1:]}
    weights = WordWeights.of(Question("What?"), lambda words: [0.0] * len(words))
    seeds = read_seeds(Question("What?"), snapshot.graph, PassageReader(text), weights, chosen)
    assert [seed.weight for seed in seeds] == [0.5]


def test_a_title_takes_its_words_before_the_names_within_it() -> None:
    """The film's own title, of which its sentence is full, says nothing of a series with a part of it for its name."""
    film = Page(
        "film",
        "Love in a Fallen City",
        [["Love in a Fallen City is a film by Ann Hui."]],
        ["Fallen City", "Ann Hui", "Love in a Fallen City"],
    )
    series = Page("series", "Fallen City", [["Fallen City is a series about three couples."]])
    snapshot, text, _ = world([film, series])
    question = Question("Who directed Love in a Fallen City?")
    chosen = choose(snapshot.graph, [], {film.passage_ids()[0]: 1.0})
    weights = WordWeights.of(question, lambda words: [1.0] * len(words))
    (seed,) = read_seeds(question, snapshot.graph, PassageReader(text), weights, chosen)
    assert {held.name for held in seed.entities.values()} == {"love in a fallen city", "ann hui"}


def test_a_seed_is_the_same_whatever_is_read_beside_it() -> None:
    pages = [SONG, KISS, KISS_AND_TELL]
    snapshot, text, _ = world(pages)
    asked = Question("Which band?")
    weights = WordWeights.of(asked, lambda words: [1.0] * len(words))
    ids = [page.passage_ids()[0] for page in pages]
    all_three = choose(snapshot.graph, [], {ids[0]: 1.0, ids[1]: 0.5, ids[2]: 0.2})
    beside = read_seeds(asked, snapshot.graph, PassageReader(text), weights, all_three)
    for seed in beside:
        only = all_three._replace(weights={seed.passage: seed.weight})
        assert read_seeds(asked, snapshot.graph, PassageReader(text), weights, only) == [seed]


def test_what_is_a_title_in_one_collection_is_none_in_another_that_is_read_beside_it() -> None:
    """`Kiss` is a title of the wiki only: there it takes its words from `Kiss Army`, and nowhere else."""
    song = Page("song", "A song", [["It was sung by Kiss Army."]], ["Kiss Army", "Kiss"])
    fans = Page("fans", "Fans", [["The Kiss Army is loud."]], ["Kiss Army"])
    elsewhere = [replace(page, collection="songs") for page in (song, fans)]
    snapshot, text, _ = world([song, fans, KISS, *elsewhere])
    asked = Question("Which band?")
    weights = WordWeights.of(asked, lambda words: [1.0] * len(words))
    first, second = (page.passage_ids()[0] for page in (song, elsewhere[0]))
    both = choose(snapshot.graph, [], {first: 1.0, second: 0.5})
    at_once = read_seeds(asked, snapshot.graph, PassageReader(text), weights, both)
    assert [names_of(seed) for seed in at_once] == [["kiss"], ["kiss army"]]
    alone = read_seeds(asked, snapshot.graph, PassageReader(text), weights, choose(snapshot.graph, [], {second: 1.0}))
    assert [names_of(seed) for seed in alone] == [["kiss army"]]
