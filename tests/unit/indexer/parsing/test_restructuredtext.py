"""reStructuredText as it is found: header blocks, Sphinx's dialect, mistakes."""

import gc
from pathlib import Path

import pytest
from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser, directives, roles, states
from hypothesis import given
from hypothesis import strategies as st

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing import parse
from indexer.parsing.docutils_dialect import _FromFirstMark

PROPOSAL = """PEP: 8
Title: Style Guide
Author: Guido van Rossum,
        Barry Warsaw
Superseded-By: 9999
Post-History: `05-Jul-2001 <https://example.org/thread>`__

Introduction
============

See :pep:`7`, :pep:`the index <0#all>`, :rfc:`2119` and :pep:`nothing`.

.. canonical-doc:: :ref:`the guide <guide>`
"""


def read(content: str) -> ParsedDocument:
    return parse(content.encode(), "text/x-rst")


def test_a_header_block_becomes_fields_and_stays_readable() -> None:
    parsed = read(PROPOSAL)
    assert parsed.fields == (
        ("pep", "8"),
        ("title", "Style Guide"),
        ("author", "Guido van Rossum, Barry Warsaw"),
        ("superseded_by", "9999"),
        ("post_history", "05-Jul-2001"),
    )
    assert parsed.title == "Style Guide"
    assert parsed.text.startswith("PEP: 8\nTitle: Style Guide\nAuthor: Guido van Rossum, Barry Warsaw\n")
    assert [section.headings for section in parsed.sections] == [(), ("Introduction",)]


def test_references_to_proposals_and_standards_become_links() -> None:
    parsed = read(PROPOSAL)
    assert "See PEP 7, the index, RFC 2119 and PEP nothing." in parsed.text
    assert [(link.target, link.text) for link in parsed.links] == [
        ("https://example.org/thread", "05-Jul-2001"),
        ("pep-0007", "PEP 7"),
        ("pep-0000#all", "the index"),
        ("rfc2119", "RFC 2119"),
    ]


def test_a_field_list_at_the_start_becomes_fields() -> None:
    parsed = read(":Author: Ada\n:Replaces-Doc: old\n:orphan:\n\nTitle\n=====\n\nText.\n\n:not: a statement\n")
    assert parsed.fields == (("author", "Ada"), ("replaces_doc", "old"))
    assert parsed.title == "Title"


@pytest.mark.parametrize(
    "head", ["", "Title\n=====\n\n", ".. a comment\n\n.. _top:\n\nTitle\n=====\n\nSub\n---\n\n.. another\n\n"]
)
def test_a_field_list_above_or_below_the_title_becomes_fields(head: str) -> None:
    parsed = read(f"{head}:Author: Cy\n:Status: Final\n\nText.\n\nPart\n~~~~\n\n:param: a field of its own\n")
    assert parsed.fields == (("author", "Cy"), ("status", "Final"))
    assert "Author: Cy\nStatus: Final" in parsed.text


@pytest.mark.parametrize("content", ["One\n===\n\n:param x: y\n\nTwo\n===\n\nText", "Text.\n\n:Author: Cy\n"])
def test_a_field_list_under_one_heading_of_several_or_behind_text_states_nothing(content: str) -> None:
    assert read(content).fields == ()


def test_unknown_roles_and_directives_keep_their_words() -> None:
    parsed = read(
        "Use :py:func:`~json.dumps` or :unknown:`a thing <target>`.\n\n"
        ".. withdrawn:: for :pep:`9`\n   and more\n   :date: today\n\n   Its *content* is read.\n\n"
        ".. code-block:: python\n   :linenos:\n   :odd-option: 1\n\n   def f():\n       pass\n\n"
        "* item\n\n  .. mystery::\n\n     deep\n"
    )
    for words in ("Use json.dumps or a thing.", "for PEP 9", "Its content is read.", "def f():\n    pass", "deep"):
        assert words in parsed.text
    assert "linenos" not in parsed.text


def test_messages_for_the_author_are_no_text() -> None:
    parsed = read("A *broken start\n\nTitle\n==\n\n`also broken\n\n.. image::\n\n+---+\n| bad\n+---+\n")
    assert "broken start" in parsed.text
    assert "| bad" in parsed.text
    for word in ("WARNING", "ERROR", "Inline", "Malformed", "underline"):
        assert word not in parsed.text


def test_nothing_is_included_and_raw_output_is_dropped(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    parsed = read(
        f"Text.\n\n.. include:: {secret}\n\n.. raw:: html\n\n   <b>raw</b>\n\n.. raw:: html\n   :file: {secret}\n\n"
        f".. csv-table:: Numbers\n   :file: {secret}\n\n.. literalinclude:: secret.py\n"
    )
    assert "Text." in parsed.text
    assert "<b>" not in parsed.text
    assert parsed.text.count("secret") == parsed.text.count(str(secret)) + parsed.text.count("secret.py")


def test_substitutions_are_filled_in_and_cannot_explode() -> None:
    assert read("The |name|.\n\n.. |name| replace:: *Isar*\n").text == "The Isar."
    bomb = "".join(f".. |a{number}| replace:: |a{number + 1}| |a{number + 1}|\n" for number in range(40))
    assert len(read(f"|a0|\n\n{bomb}\n.. |a40| replace:: x\n").text) < 100_000


def test_tables_lists_and_definitions_are_readable() -> None:
    parsed = read(
        "=== ===\na   b\n=== ===\n1   2\n=== ===\n\n3. three\n4. four\n\n   - inner\n\nterm\n    Its definition.\n\n"
        "| verse one\n| verse two\n\nNote [1]_.\n\n.. [1] The footnote.\n"
    )
    assert parsed.text == (
        "a | b\n1 | 2\n\n3. three\n4. four\n  - inner\n\nterm\nIts definition.\n\n"
        "verse one\nverse two\n\nNote [1].\n\n[1] The footnote."
    )


def test_figures_have_their_caption() -> None:
    parsed = read(
        "a\n\n.. figure:: x.png\n   :alt: a map\n\n   The bed.\n\n   A legend.\n\n.. image:: y.png\n\nFigure 2: y\n"
    )
    assert [figure.caption for figure in parsed.figures] == ["The bed.", "Figure 2: y"]
    figure = parsed.figures[0]
    assert parsed.text[figure.start : figure.end] == "a map\n\nThe bed.\n\nA legend."


def test_parsing_changes_nothing_global() -> None:
    def state() -> tuple[object, ...]:
        return dict(roles._role_registry), dict(roles._roles), set(directives._directive_registry), states.state_classes

    read("warm up :pep:`1`\n")
    before = state()
    read(PROPOSAL + "\n.. withdrawn::\n\n   x\n")
    assert state() == before


def test_a_document_that_was_read_is_held_nowhere() -> None:
    read(PROPOSAL + "\n* a list\n\n  * in a list\n")
    gc.collect()
    assert not [one for one in gc.get_objects() if type(one) is nodes.document]


def test_a_very_long_line_is_read() -> None:
    parsed = read("word " * 50_000 + "\n\n" + "x" * 50_000 + "\n\nend")
    assert parsed.text.endswith("end")
    assert parsed.text.count("word") == 50_000


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises(UnparsableDocument) as caught:
        read("\n\n".join("  " * depth + "* a" for depth in range(600)))
    assert caught.value.reason == "too_deep"


@given(st.text("ab1 _*`|[]#:<>()\\\x00\n\t\u2028.-", max_size=60))
def test_markup_is_found_as_if_each_word_were_tried(text: str) -> None:
    inliner = states.Inliner()
    inliner.init_customizations(get_default_settings(Parser))
    pattern = inliner.patterns.initial
    everywhere, found = pattern.search(text), _FromFirstMark(pattern).search(text)
    assert (found and (found.span(), found.groups())) == (everywhere and (everywhere.span(), everywhere.groups()))
