"""Identities: the same thing has the same id; different things do not share one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import MalformedEvent, MalformedToken
from schemas.ids import (
    DocumentKey,
    bare_name,
    digest,
    entity_id,
    entity_ids,
    format_positions,
    normalise_name,
    parse_positions,
)


def test_the_id_keeps_every_slash_after_the_first() -> None:
    assert DocumentKey.parse("docs/a/b/c.md") == DocumentKey("docs", "a/b/c.md")
    assert str(DocumentKey("docs", "a/b")) == "docs/a/b"


@pytest.mark.parametrize("key", ["", "/id", "no-slash", "c/", "c/with\x00nul", "c\n/id", "c/" + "x" * 5000])
def test_a_key_that_names_no_document_is_refused_with_a_sentence(key: str) -> None:
    with pytest.raises(MalformedEvent) as refusal:
        DocumentKey.parse(key)
    assert refusal.value.reason == "bad_key"
    assert str(refusal.value).endswith((".", "'."))


def test_a_token_keeps_the_highest_offset_of_each_partition() -> None:
    assert parse_positions("3:1042") == {3: 1042}
    assert parse_positions("0:17, 3:5,0:9") == {0: 17, 3: 5}


@pytest.mark.parametrize("token", ["", "3", "3:", ":4", "-1:4", "3:x", "1:2,,3:4", "٣:4", "1:" + "9" * 30])
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(MalformedToken):
        parse_positions(token)


@given(st.dictionaries(st.integers(0, 1000), st.integers(0, 10**15), min_size=1))
def test_a_token_reads_back(reached: dict[int, int]) -> None:
    assert parse_positions(format_positions(reached)) == reached


@given(st.lists(st.text()), st.lists(st.text()))
def test_digests_of_different_parts_differ(left: list[str], right: list[str]) -> None:
    assert (digest(*left) == digest(*right)) == (left == right)


@pytest.mark.parametrize(
    ("name", "normalised"),
    [
        ("Beyoncé (singer)", "beyonce singer"),
        ("  Guido   van Rossum's ", "guido van rossum"),
        ("Mummy'S Boys", "mummy boys"),
        ("Mummy’s Boys", "mummy boys"),
        ("O'Shea's", "o shea"),
        ("PEP 8 – Style Guide", "pep 8 style guide"),
        ("C++", "c++"),
        ("AT&T", "at&t"),
        ("Will &amp; Grace", "will & grace"),
        ("Q&notes;", "q&notes"),
        ("(1942)", "1942"),
        ("...", ""),
        ("Straße", "strasse"),
        ("Łódź", "lodz"),
        ("İzmir", "izmir"),
        ("ｶﾞｽ", "ガス"),
        ("カ\u3099ス", "ガス"),
        ("ＩＢＭ", "ibm"),
        ("مُحَمَّد", "محمد"),
        ("हिन्दी (भाषा)", "हिन्दी भाषा"),
        ("Be\u00adtrieb", "betrieb"),
        ("ΟΔΟΣ", "οδοσ"),
        ("οδός", "οδοσ"),
        ("Толстой", "толстой"),
        ("Пётр", "петр"),
    ],
)
def test_names_are_shared_whatever_their_dress(name: str, normalised: str) -> None:
    assert normalise_name(name) == normalised


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ガス", "カス"),
        ("バス", "パス"),
        ("राज", "राज़"),
        ("Mercury (planet)", "Mercury (element)"),
        ("їжак", "іжак"),
        ("май", "маи"),
    ],
)
def test_names_that_differ_in_a_letter_or_a_bracket_are_two(one: str, other: str) -> None:
    assert normalise_name(one) != normalise_name(other)


@pytest.mark.parametrize(("name", "bare"), [("Beyoncé (singer)", "beyonce"), ("[1942]", "1942"), ("f(x) (maths)", "f")])
def test_a_bare_name_is_without_brackets_unless_that_is_all(name: str, bare: str) -> None:
    assert bare_name(name) == bare


@given(st.text())
def test_normalising_twice_changes_nothing_more(name: str) -> None:
    once = normalise_name(name)
    assert normalise_name(once) == once


def test_many_entities_have_the_ids_that_each_has_alone() -> None:
    names = ["ada lovelace", "", "naïve name", "🦉"]
    assert entity_ids("papers", names) == [entity_id("papers", name) for name in names]
