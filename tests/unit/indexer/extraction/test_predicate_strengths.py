"""Every predicate that the rules have a name for has a strength of its own; other verbs and fields have none."""

import re
from pathlib import Path

import pytest

import indexer.extraction
from indexer.extraction.metadata import predicate_of
from indexer.extraction.prose.predicates import ACTIVE, ADJECTIVES, NOUNS, PASSIVE, VERB_FORMS, active_relation
from indexer.extraction.relating_fields import CLASSES, DOCUMENTS, LISTS, PERSONS
from schemas.predicates import ALIAS, IS_A, NAMED_FIRST, PREDICATE_STRENGTHS, UNLISTED_STRENGTH, predicate_strength

_LITERAL = re.compile(r'(?:Fact|Statement)\((?:\w+, )?"(\w+)"|^    "\w+": "(\w+_(?:in|on))",', re.MULTILINE)


def literal_predicates() -> set[str]:
    """Those that stand in the program, of facts that no table of verbs and nouns makes."""
    source = Path(indexer.extraction.__file__).parent
    texts = [path.read_text("utf-8") for path in source.rglob("*.py")]
    return {name for text in texts for found in _LITERAL.finditer(text) for name in found.groups() if name}


def test_all_that_the_rules_name_is_listed() -> None:
    by_words = {each.predicate for table in (ACTIVE, PASSIVE, NOUNS, ADJECTIVES) for each in table.values()}
    by_fields = {predicate_of(field) for field in PERSONS | DOCUMENTS | LISTS | CLASSES}
    literal = literal_predicates()
    assert {"born_on", "located_in", "released_in"} <= literal
    assert (by_words | by_fields | literal | {ALIAS, IS_A, *NAMED_FIRST}) - PREDICATE_STRENGTHS.keys() == set()


def test_verbs_outside_the_vocabulary_count_as_unknown() -> None:
    verbs = {form.lemma for forms in VERB_FORMS.values() for form in forms}
    untyped = {found.predicate for verb in verbs if (found := active_relation(verb, "")) and not found.is_typed}
    assert len(untyped) > 100
    assert {each for each in untyped if predicate_strength(each) != UNLISTED_STRENGTH} == {"updates"}  # also a field


@pytest.mark.parametrize(
    ("predicate", "strength"),
    [
        ("is_a", 1.0),
        ("part_of", 0.95),
        ("depends_on", 0.9),
        ("uses", 0.85),
        ("implements", 0.8),
        ("extends", 0.75),
        ("related_to", 0.5),
        ("mentioned_in", 0.3),
        ("announces", 0.3),
        ("my_field", 0.3),
    ],
)
def test_strengths_are_those_that_are_documented(predicate: str, strength: float) -> None:
    assert predicate_strength(predicate) == strength
