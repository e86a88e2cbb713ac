"""JSON and XML of no known vocabulary."""

import msgspec
import pytest

from indexer.documents import Figure, ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing import json as json_parser
from indexer.parsing import parse


def read_json(value: object) -> ParsedDocument:
    return parse(msgspec.json.encode(value), "application/json; charset=utf-8")


def sections(parsed: ParsedDocument) -> list[tuple[tuple[str, ...], str]]:
    return [(one.headings, parsed.text[one.start : one.end]) for one in parsed.sections]


def test_fields_of_content_are_found_at_any_depth_under_their_path() -> None:
    parsed = read_json({"a": [{"b": {"body": "One."}}, {"longDescription": "Two."}], "odd key": {"text": "Three."}})
    assert sections(parsed) == [
        (("a[0].b.body",), "One."), (("a[1].longDescription",), "Two."), (('["odd key"].text',), "Three."),
    ]  # fmt: skip


def test_codes_and_numbers_are_no_content() -> None:
    parsed = read_json({"content": {"type": "html", "lang": "en", "value": "Some words."}, "content_type": "a b"})
    assert sections(parsed) == [(("content.value",), "Some words.")]


def test_titles_of_objects_stand_behind_the_path() -> None:
    parsed = read_json({"name": "Atlas", "maps": [{"title": "Delta", "summary": "Sand."}, {"summary": "Mud."}]})
    assert parsed.title == "Atlas"
    assert [one.headings for one in parsed.sections] == [
        ("maps[0].summary", "Atlas", "Delta"), ("maps[1].summary", "Atlas"),
    ]  # fmt: skip


def test_strings_of_one_array_are_one_section_and_html_is_read_as_html() -> None:
    parsed = read_json({"paragraphs": ["One & two.", "<p>Three <em>four</em>.</p><h2>Five</h2><p>Six.</p>"]})
    assert sections(parsed) == [
        (("paragraphs",), "One & two.\n\nThree four."), (("paragraphs", "Five"), "Six."),
    ]  # fmt: skip


def test_short_values_of_the_outermost_object_become_fields() -> None:
    parsed = read_json({"author": "Ada L.", "tags": ["a", "b"], "year": 1843, "done": True, "content": "Words."})
    assert parsed.fields == (("author", "Ada L."), ("tags", "a"), ("tags", "b"), ("year", "1843"))


def test_object_without_content_field_is_read_as_row() -> None:
    parsed = read_json({"sku": "P-7", "name": "Brass pump", "price": 12, "sold": False, "maker": {"city": "Bern"}})
    assert parsed.title == "Brass pump"
    assert sections(parsed) == [
        (("$", "Brass pump"), "sku: P-7. name: Brass pump. price: 12. sold: false. maker.city: Bern.")
    ]
    assert ("sku", "P-7") in parsed.fields


def test_array_of_objects_is_read_row_by_row() -> None:
    rows = [{"code": "E1", "meaning": "No water."}, {"code": "E2", "tags": ["valve", "hot"]}, {"code": None}]
    assert sections(read_json({"errors": rows})) == [
        (("errors[0]",), "code: E1. meaning: No water."), (("errors[1]",), "code: E2. tags: valve, hot."),
    ]  # fmt: skip


def test_rows_within_a_row_are_sections_of_their_own() -> None:
    order = {"order": 7, "customer": {"lines": [{"sku": "A"}, {"sku": "B"}]}}
    assert sections(read_json(order)) == [
        (("$",), "order: 7."), (("customer.lines[0]",), "sku: A."), (("customer.lines[1]",), "sku: B."),
    ]  # fmt: skip


def test_too_many_rows_are_refused_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_parser, "MAX_TABLE_ROWS", 2)
    with pytest.raises(UnparsableDocument, match="more than 2 objects") as caught:
        read_json([{"a": 1}, {"a": 2}, {"a": 3}])
    assert caught.value.reason == "too_large"


def test_long_text_is_content_whatever_its_name() -> None:
    cause = "Sand had come in through the torn strainer. " * 6
    parsed = read_json({"description": "It makes a noise.", "rootCause": cause, "key": "x" * 300})
    assert sections(parsed) == [(("description",), "It makes a noise."), (("rootCause",), cause.strip())]


@pytest.mark.parametrize("value", ["Some words.", ["Some words."]])
def test_json_may_be_a_text_alone(value: object) -> None:
    assert sections(read_json(value)) == [(("$",), "Some words.")]


def test_in_json_line_separators_and_controls_are_what_they_are() -> None:
    assert parse('{"content": "a\u2028b\\u0007c"}'.encode(), "application/json").text == "a\nb c"


def read_xml(content: str) -> ParsedDocument:
    return parse(content.encode(), "text/xml")


def test_elements_beside_text_are_inline() -> None:
    parsed = read_xml("<r><p>A <x>long</x> <emphasis>river</emphasis>.</p><p>Its <u href='bed.xml'>bed</u>.</p></r>")
    assert parsed.text == "A long river.\n\nIts bed."
    assert parsed.emphasised == ("river",)
    assert [(link.target, link.text) for link in parsed.links] == [("bed.xml", "bed")]


def test_a_feed_has_a_section_for_each_entry() -> None:
    parsed = read_xml(
        "<rss><channel><title>News</title><item><title>One</title><description>&lt;p&gt;Sand &lt;b&gt;and&lt;/b&gt; mud"
        "&lt;/p&gt;</description></item><item><title>Two</title><description><![CDATA[<p>Ice</p>]]></description></item>"
        "</channel></rss>"
    )
    assert sections(parsed) == [(("News", "One"), "Sand and mud"), (("News", "Two"), "Ice")]


def test_xml_knows_the_entities_of_html_and_no_others() -> None:
    assert read_xml("<!DOCTYPE r SYSTEM 'r.dtd'><r>caf&eacute;&nbsp;x</r>").text == "café x"


def test_xml_says_its_character_set_itself() -> None:
    content = '<?xml version="1.0" encoding="ISO-8859-1"?><r>Flüsse</r>'.encode("latin-1")
    assert parse(content, "application/xml").text == "Flüsse"


def test_tables_code_and_comments() -> None:
    parsed = read_xml("<r><!-- no --><row><c>a</c><c>b</c></row><programlisting>x = 1\n  y</programlisting></r>")
    assert parsed.text == "a | b\n\nx = 1\n  y"


def test_a_page_sent_as_xml_is_read_as_html() -> None:
    parsed = read_xml("<html xmlns='http://www.w3.org/1999/xhtml'><body><h1>A</h1><p>b<br/>c</p></body></html>")
    assert sections(parsed) == [(("A",), "b\nc")]


def test_an_image_in_xml_takes_the_figure_line_behind_it() -> None:
    parsed = read_xml("<r><figure><graphic fileref='a.png'/></figure><p>Figure 4. The bed.</p><p>Words.</p></r>")
    assert parsed.figures == (Figure(0, 18, "Figure 4. The bed."),)


def test_values_of_objects_within_are_fields_by_their_path() -> None:
    levels = {"a": {"b": {"c": {"d": {"e": "too deep"}, "near": 3}}}}
    record = {"body": "Some text.", "owner": {"name": "Cara Diaz", "Home-Page": "x", "body": "Not a field."}, **levels}
    assert read_json(record).fields == (("owner.name", "Cara Diaz"), ("owner.home_page", "x"), ("a.b.c.near", "3"))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"a": 1}\n x', "line 2, column 2 breaks"),
        ('{"é": tru}', "line 1, column 7 breaks"),
        ('{"a": [1,\n', "line 2, column 1 breaks"),
        ("", "line 1, column 1 breaks"),
        ('{"a": "\\ud800"}', "half a surrogate pair"),
        ("[NaN]", "NaN"),
        ("[1e400]", "too large"),
        ("9" * 5_000, "breaks its rules"),
    ],
)
def test_what_breaks_the_rules_of_json_is_told_by_its_place(content: str, why: str) -> None:
    with pytest.raises(UnparsableDocument, match=f"^The content is not JSON: .*{why}") as caught:
        json_parser.parse(content)
    assert caught.value.reason == "malformed"


def test_numbers_in_fields_are_written_as_stored_before() -> None:
    parsed = json_parser.parse(
        '{"text": "The river.", "large": 123456789012345678901234567890, "id": 18446744073709551615}'
    )
    assert dict(parsed.fields) == {"large": "1.2345678901234568e+29", "id": "18446744073709551615"}
