"""Which names have the same key, and which must not."""

import pytest

from indexer.resolution.keys import resolution_key, types_agree


@pytest.mark.parametrize(
    ("entity_type", "names"),
    [
        ("person", ["Okafor, Maria J.", "Maria J. Okafor", "maria j okafor", "Maria J Okafor (engineer)"]),
        ("person", ["J.R.R. Tolkien", "J. R. R. Tolkien", "JRR Tolkien", "Tolkien, J. R. R."]),
        ("person", ["Conor O’Brien", "Conor O'Brien", "Conor OBrien"]),
        ("organisation", ["Acme, Inc.", "Acme Ltd", "ACME GmbH", "Acme"]),
        ("organisation", ["the U.S. Navy", "US Navy", "U. S. Navy"]),
        ("organisation", ["the WHO", "WHO", "W.H.O."]),
        ("organisation", ["The Beatles", "Beatles", "beatles"]),
        ("organisation", ["Harbour & Sons", "Harbour and Sons"]),
        ("place", ["U.S.A.", "USA", "the USA", "U. S. A."]),
        ("place", ["St. Louis", "St Louis", "St. Louis's"]),
        ("concept", ["neural networks", "Neural Network", "neural-network", "the neural networks"]),
        ("thing", ["PEPs", "PEP", "the PEPs"]),
        ("organisation", ["NGOs", "NGO"]),
        ("thing", ["The Transformer", "Transformer", "the Transformer"]),
        ("work", ["the Lord of the Rings", "Lord of the Rings"]),
        ("concept", ["centres for computing", "Centre for Computing"]),
        ("product", ["network caches", "network cache"]),
        ("thing", ["TCP/IP", "TCP-IP", "TCP – IP", "ＴＣＰ/ＩＰ"]),
    ],
)
def test_spellings_of_one_thing_share_a_key(entity_type: str, names: list[str]) -> None:
    assert len({resolution_key(name, entity_type) for name in names}) == 1


@pytest.mark.parametrize(
    ("entity_type", "first", "second"),
    [
        ("person", "James Martin", "Martin James"),
        ("person", "J. Okafor", "Maria J. Okafor"),
        ("person", "Sammy Davis, Jr.", "Jr. Sammy Davis"),
        ("organisation", "The Who", "WHO"),
        ("organisation", "The Band", "band"),
        ("organisation", "CDC", "Centers for Disease Control"),
        ("organisation", "The Limited", "The"),
        ("place", "Columbia", "Colombia"),
        ("product", "Boeing 747-400", "Boeing 747-40"),
        ("product", "iPhone 4", "iPhone 5"),
        ("concept", "C", "C++"),
        ("concept", "physics", "physic"),
        ("concept", "Windows", "window"),
        ("thing", "Wild Things", "Wild Thing"),
        ("work", "Aliens", "Alien"),
        ("work", "The Transformer", "Transformer"),
        ("thing", "SaaS", "SaaSs"),
        ("concept", "A level", "level"),
        ("work", "The Colossus of Rhodes (film)", "Colossus of Rhodes"),
        ("thing", "Determinant (Algorithm 41)", "Determinant (Algorithm 224 [F3])"),
        ("concept", "get_method_names", "get_method_name"),
        ("time", "2019-20", "2019 20"),
    ],
)
def test_what_is_only_alike_has_another_key(entity_type: str, first: str, second: str) -> None:
    assert resolution_key(first, entity_type) != resolution_key(second, entity_type)


@pytest.mark.parametrize("name", ["", " ", "...", "—", "(!?)", "\N{ZERO WIDTH SPACE}"])
def test_a_name_without_a_letter_has_no_key(name: str) -> None:
    assert resolution_key(name, "thing").strip("\N{ZERO WIDTH SPACE}") == ""


def test_odd_names_have_keys_of_their_own() -> None:
    assert resolution_key("x", "thing") == "x"
    latin, homoglyph = resolution_key("Apple", "organisation"), resolution_key("Аpple", "organisation")
    assert latin != homoglyph  # the second begins with a Cyrillic letter: a person decides
    long = "word " * 2_000
    assert len(resolution_key(long, "concept")) > 9_000
    assert resolution_key(long, "concept") != resolution_key(long + "more", "concept")


def test_types_agree_but_for_those_of_different_things() -> None:
    assert types_agree("person", "person")
    assert types_agree("", "place")
    assert types_agree("work", "thing")
    assert not types_agree("person", "organisation")
    assert not types_agree("thing", "person")
