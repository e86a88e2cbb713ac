"""A collection read over HTTP: what is a field, what a relation, and what belongs to somebody else."""

import pytest

from query_api.evaluation.synthetic.source import IndexedDocument, read_collection
from schemas.errors import WrongSetting
from schemas.progress_bars import Bar
from tests.unit.query_api.evaluation.synthetic.pretend_collection import COLLECTION, proposals


@pytest.fixture
def documents() -> dict[str, IndexedDocument]:
    read = read_collection(proposals(), COLLECTION, Bar)
    return {document.id: document for document in read}


def test_every_page_is_read(documents: dict[str, IndexedDocument]) -> None:
    assert list(documents) == [f"n{number}.md" for number in range(1, 7)]


def test_fields_are_metadata_and_what_the_header_states_as_the_text_spells_it(
    documents: dict[str, IndexedDocument],
) -> None:
    """Neither what a sentence makes likely (.7) nor what another document's chunk states."""
    assert documents["n2.md"].fields == {"author": ("Cleo",), "created": ("1992",), "status": ("Final",)}
    assert documents["n1.md"].fields["author"] == ("Ada", "Ben")


def test_a_value_that_names_a_document_is_a_relation_and_no_field(documents: dict[str, IndexedDocument]) -> None:
    """Also where the metadata has it as the header writes it: a bare number."""
    assert documents["n2.md"].relations == (("replaces", "n1.md"),)
    assert "replaces" not in documents["n2.md"].fields
    assert documents["n4.md"].links == ("n3.md",)
    assert documents["n3.md"].links == (), "what links here is no link of its own"


def test_an_empty_collection_is_told() -> None:
    with pytest.raises(WrongSetting, match="'nothing' is empty, or there is none"):
        read_collection(proposals(), "nothing", Bar)
