"""What pronouns, pointing words and shortened names refer to, as the statements of a document have it."""

import pytest

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import prepare
from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey


def stated(text: str) -> list[tuple[str, str, str]]:
    upsert = DocumentUpsert(key=DocumentKey("notes", "a"), content=text.encode(), content_type="text/markdown")
    found = prepare(upsert, ChunkingParameters()).statements
    return [(one.roles[0][1], one.predicate, one.roles[1][1]) for one in found if one.sentence >= 0]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        (
            "The mill uses a steam boiler. The boiler is inspected by Harlan Safety.",
            ("harlan safety", "inspects", "steam boiler"),
        ),
        ("The mill was bought by Silas Orme. Orme owns the quarry.", ("silas orme", "owns", "quarry")),
        (
            "Enrolment depends on the language test. This test requires the exam room.",
            ("language test", "requires", "exam room"),
        ),
        ("The tide gauge is a sensor. It requires a dry socket.", ("tide gauge", "requires", "dry socket")),
        ("# Espresso grinder\n\nIt requires a dedicated socket.", ("espresso grinder", "requires", "dedicated socket")),
        (
            "The choir uses the Ostley hymnal. It was compiled by Father Brandt.",
            ("father brandt", "compiles", "ostley hymnal"),
        ),
        (
            "The ferry company lends the slipway. The company was set up by Matthis Groen.",
            ("ferry company", "set_up_by", "matthis groen"),
        ),
        ("The Delta 4 is a water pump. This pump requires a brass filter.", ("delta 4", "requires", "brass filter")),
        (
            "Nobody knew it, but the Vesper quartet hired Lorenz Adler. He had been dismissed by the Opera Nova.",
            ("lorenz adler", "dismissed_by", "opera nova"),
        ),
        ("Marsh uses Delta, and it requires Redis 7.", ("marsh", "requires", "redis 7")),
    ],
)
def test_reference_is_what_was_named_before(text: str, fact: tuple[str, str, str]) -> None:
    assert fact in stated(text)


@pytest.mark.parametrize(
    "text",
    [
        "Tay Rail is a bridge. Esk Rail is a bridge. The bridge was designed by Ann Bell.",  # either
        "The studio albums of Heron use Marsh. The album was designed by Ann Bell.",
        "This allows type checkers to run.",
    ],
)
def test_reference_with_two_readings_is_left_as_it_is(text: str) -> None:
    assert {fact[0] for fact in stated(text) if fact[1] in ("designed_by", "allows")} <= {"bridge", "album"}


def test_pronoun_of_another_kind_is_not_resolved() -> None:
    assert "requires" not in {fact[1] for fact in stated("Ada Moss met Ben Lund. It requires a dry socket.")}


def test_shortened_name_is_shown_as_written_and_pronoun_as_its_name() -> None:
    text = "The mill uses a steam boiler. It requires a dry socket. Harlan Safety inspects the boiler."
    upsert = DocumentUpsert(key=DocumentKey("notes", "a"), content=text.encode(), content_type="text/markdown")
    roles = [role for one in prepare(upsert, ChunkingParameters()).statements for role in one.roles]
    assert ("subject", "mill", "mill") in roles
    assert ("object", "steam boiler", "boiler") in roles
