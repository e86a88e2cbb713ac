"""What a short or shared name stands for in its document."""

import pytest

from indexer.documents import AboutName
from indexer.extraction.entity_mentions import EntityMention
from indexer.resolution.own_names import full_names, own_names

MANY = [f"{first}{more} carter" for first in "abcdefgh" for more in "aeiou"]


@pytest.mark.parametrize(
    ("names", "meant"),
    [
        (["john carter", "john", "carter", "j. carter"], {"john", "carter", "j. carter"}),
        (["john carter", "mr. carter", "dr. john carter"], {"mr. carter", "dr. john carter"}),
        (["john carter", "mr. john"], set()),
        (["vincent van gogh", "van gogh", "gogh"], {"van gogh", "gogh"}),
        (["john m. carter", "john carter", "j. carter", "carter"], {"john carter", "j. carter", "carter"}),
        (["john carter", "mary carter", "carter"], set()),
        (["john carter", "john stone", "john", "stone"], {"stone"}),
        (["john carter", "j. carter", "james carter"], set()),
        (["carter", "stone", "..."], set()),
        ([*MANY, "carter"], set()),
    ],
)
def test_short_name_of_person_means_the_only_full_name_that_fits(names: list[str], meant: set[str]) -> None:
    found = full_names(names)
    assert set(found) == meant
    assert full_names(reversed(names)) == found


@pytest.mark.parametrize("form", ["john carter{}", "anna{} carter"])
def test_many_persons_of_one_name_are_not_all_compared(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    compared = []

    def is_short_for(short: tuple[str, ...], full: tuple[str, ...]) -> bool:
        compared.append(short)
        return False

    monkeypatch.setattr("indexer.resolution.own_names._is_short_for", is_short_for)
    full_names([form.format(number) for number in range(1_000)])
    assert len(compared) < 10_000


def mentions(*entities: tuple[str, str, str]) -> list[EntityMention]:
    return [EntityMention(0, name, surface, 1, (0,), kind, 0.9) for name, surface, kind in entities]


def test_unsure_family_name_means_the_person_named_in_full() -> None:
    found = own_names((), mentions(("amara osei", "Amara Osei", "person"), ("osei", "Osei", "thing")))
    assert {name: own.name for name, own in found.items()} == {"osei": "amara osei"}
    assert found["osei"].entity_type == "person"


@pytest.mark.parametrize(
    ("surface", "plain"),
    [("The Transformer", "Transformer"), ("A Cloud diary", "Cloud diary"), ("PEPs", "PEP"), ("turbines", "turbine")],
)
def test_plural_or_article_stands_for_the_plain_name_beside_it(surface: str, plain: str) -> None:
    entities = mentions((surface.lower(), surface, "thing"), (plain.lower(), plain, "concept"))
    assert own_names((), entities)[surface.lower()].name == plain.lower()
    assert own_names((), entities[:1]) == {}


def test_article_of_a_name_stays_beside_a_common_word() -> None:
    assert own_names((), mentions(("the guardian", "The Guardian", "work"), ("guardian", "guardian", "concept"))) == {}


@pytest.mark.parametrize(
    ("title", "own"),
    [
        ("Mercury (planet)", "mercury planet"),
        ("Titanic (1997 film)", "titanic 1997 film"),
        ("Mercury", None),
        ("Release notes (2024)", None),
        ("Gradient descent (Part 2)", None),
        ("World Wide Web Consortium (W3C)", None),
        ("SLO (service level objective)", None),
    ],
)
def test_bracket_of_title_distinguishes_what_is_not_a_part(title: str, own: str | None) -> None:
    name = title.partition(" (")[0].lower()
    found = own_names([AboutName(name, title, 1.0)], mentions((name, title.partition(" (")[0], "place")))
    assert [each.name for each in found.values()] == ([own] if own else [])
