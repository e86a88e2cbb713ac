"""Claims about fields of a document that they name."""

import pytest

from query_api.answers.sentences import NO_TEXTS
from query_api.research.claimed_fields import by_fields
from tests.unit.query_api.answers.found import hit

METADATA = {
    "author": ["Ann Lee", "Bo Ek"], "status": "Final", "created": "05-Jul-2001", "replaces": "3", "topic": "Birds",
}  # fmt: skip
NUMBERED = hit(1, "PEP 7 – Birds", "Author: Ann Lee, Bo Ek\nStatus: Final", document_id="pep-0007", metadata=METADATA)
TITLED = hit(2, "Hamlet", "Hamlet was written by Shakespeare.", metadata={"author": "Ann Lee"})


def fields_with(phrase: str) -> list[str]:
    return {"final": ["status"], "rejected": ["status"], "trees": ["topic"]}.get(phrase, [])


def decided(claim: str) -> list[bool]:
    return [each.supports for each in by_fields(claim, [NUMBERED, TITLED], fields_with, NO_TEXTS.first_passage)]


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("PEP 7 was written by Ann Lee.", [True]),
        ("PEP 7 was written by Ann Lee and Bo Ek.", [True]),
        ("Bo Ek is the author of PEP 7.", [True]),
        ("PEP 7 was written by Cy Fox.", [False]),
        ("PEP 7 was written by Ann Lee and Cy Fox.", []),  # undecided
        ("PEP 7 was written in a hurry.", []),
        ("PEP 7 was allegedly written by Cy Fox.", []),
        ("PEP 7 was created in 2001.", [True]),
        ("PEP 7 was created on 5 July 2001.", [True]),
        ("PEP 7 was created in July 2003.", [False]),
        ("PEP 7 is final.", [True]),
        ("PEP 7 is rejected.", [False]),
        ("PEP 7 is long.", []),
        ("The topic of PEP 7 is trees.", []),  # it may have several
        ("PEP 7 replaces PEP 4.", []),  # for the graph to say
        ("PEP 9 was written by Ann Lee.", []),
        ("Hamlet was written by Ann Lee.", [True]),
        ("Hamlet was written by Shakespeare.", []),  # the play, not the page
        ("Hamlet was written by Marlowe.", [False]),
    ],
)
def test_a_claim_is_compared_with_the_field_it_speaks_of(claim: str, expected: list[bool]) -> None:
    assert decided(claim) == expected
