"""Which passages become seeds, for how much they count, and which names their sentences hold."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from query_api.index.graph.view import GraphView
from query_api.index.search_snapshot import PassageReader
from query_api.index.text.text_segments import Candidate
from query_api.query.analysis import Question, WordWeights
from query_api.query.entity_linking import QueryLink
from query_api.retrieval.retrievers.graph_edges import Seed, Sentence
from query_api.retrieval.retrievers.graph_seeds import (
    ChosenSeeds,
    PassageNumbers,
    ResidualHits,
    choose_seeds,
    hop_strength,
    read_seeds,
    residual_hits,
    residual_query,
)
from schemas.ids import DocumentKey
from tests.support.fakes.text_stores import Page, world

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
    weights = WordWeights.from_idf(asked, lambda words: [1.0] * len(words))
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
    weights = WordWeights.from_idf(Question("What?"), lambda words: [0.0] * len(words))
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
    weights = WordWeights.from_idf(question, lambda words: [1.0] * len(words))
    (seed,) = read_seeds(question, snapshot.graph, PassageReader(text), weights, chosen)
    assert {held.name for held in seed.entities.values()} == {"love in a fallen city", "ann hui"}


def test_a_seed_is_the_same_whatever_is_read_beside_it() -> None:
    pages = [SONG, KISS, KISS_AND_TELL]
    snapshot, text, _ = world(pages)
    asked = Question("Which band?")
    weights = WordWeights.from_idf(asked, lambda words: [1.0] * len(words))
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
    weights = WordWeights.from_idf(asked, lambda words: [1.0] * len(words))
    first, second = (page.passage_ids()[0] for page in (song, elsewhere[0]))
    both = choose(snapshot.graph, [], {first: 1.0, second: 0.5})
    at_once = read_seeds(asked, snapshot.graph, PassageReader(text), weights, both)
    assert [names_of(seed) for seed in at_once] == [["kiss"], ["kiss army"]]
    alone = read_seeds(asked, snapshot.graph, PassageReader(text), weights, choose(snapshot.graph, [], {second: 1.0}))
    assert [names_of(seed) for seed in alone] == [["kiss army"]]


QUESTION = Question("Where was the director of Alpha born?")


def sentence(text: str, share: float, *names: str) -> Sentence:
    return Sentence(text, f" {text.lower().rstrip('.')} ", share, names)


def seed(*sentences: Sentence) -> Seed:
    return Seed(0, 0, 1.0, None, sentences, {})


def found(scores: dict[str, float]) -> list[Candidate]:
    return [Candidate(name, score, DocumentKey("c", name)) for name, score in scores.items()]


def test_what_is_open_is_asked_about_the_new_names_of_the_two_best_sentences() -> None:
    read = seed(
        sentence("It was shot in Rome.", 0.1, "rome"),
        sentence("Alpha was directed by Jane Doe.", 0.9, "jane doe", "alpha"),
        sentence("Unrelated Name.", 0.0, "unrelated name"),
    )
    assert residual_query(QUESTION, read, "A film") == "director born jane doe rome"


def test_the_names_of_the_seed_itself_ask_nothing_new() -> None:
    read = seed(sentence("Bitter Rice, or Rice, is sold by Jane Doe.", 0.5, "bitter rice", "rice", "jane doe"))
    assert residual_query(QUESTION, read, "Bitter Rice (film)") == "director alpha born jane doe"
    assert residual_query(QUESTION, read, "Rice") == "director alpha born jane doe"
    assert residual_query(QUESTION, read, "Jane Doe").endswith("born bitter rice rice")


def test_a_seed_without_a_title_asks_about_all_its_names() -> None:
    for title in ("", "…"):
        assert residual_query(QUESTION, seed(sentence("Rome.", 0.5, "rome")), title) == "director alpha born rome"


def test_without_a_new_name_nothing_is_asked() -> None:
    assert residual_query(QUESTION, seed(), "A film") == ""
    assert residual_query(QUESTION, seed(sentence("Alpha.", 0.5, "alpha")), "A film") == ""


def test_a_hop_knows_its_best_but_for_the_seed_itself() -> None:
    scores = {f"p{at:02}": 30.0 - at for at in range(27)}
    hop = residual_hits(2, "p00", "asked", found(scores))
    assert hop is not None
    assert hop == ResidualHits(2, "asked", 29.0, tuple(scores)[1:])


def test_equal_passages_are_in_the_order_of_their_names_and_a_hop_that_finds_its_seed_alone_is_none() -> None:
    assert residual_hits(0, "p", "asked", found({"p": 9.0, "z": 3.0, "a": 3.0})) == ResidualHits(
        0, "asked", 3.0, ("a", "z")
    )
    assert residual_hits(0, "p", "asked", found({"p": 9.0})) is None
    assert residual_hits(0, "p", "asked", []) is None


def test_passages_continue_a_hop_by_their_share_of_its_best() -> None:
    bm25 = np.array([8.0, 6.0, 4.0, 0.0, 10.0])
    assert hop_strength(ResidualHits(0, "asked", 8.0, ()), bm25) == pytest.approx([1.0, 0.75, 0.5, 0.0, 1.0])
