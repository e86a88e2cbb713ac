"""CSV and TSV: a table is found row by row."""

import csv
from typing import Any

import pytest

from indexer.chunking.splitter import ChunkingParameters, chunk
from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing import csv as csv_parser
from indexer.parsing import media_type_of, parse
from indexer.parsing.registry import (
    MAX_TABLE_COLUMNS,
    MAX_TABLE_FIELD_CHARACTERS,
    MAX_TABLE_ROW_CHARACTERS,
    MAX_TABLE_ROWS,
)
from schemas.ids import DocumentKey

KEY = DocumentKey("default", "ports.csv")
ROWS = [("Port", "River", "Notes"), ("Basel", "Rhine", "Head of navigation"), ("Koblenz", "Mosel", "At the Rhine too!")]
BASEL = "Port: Basel. River: Rhine. Notes: Head of navigation."


def table(delimiter: str) -> str:
    return "".join(delimiter.join(row) + "\r\n" for row in ROWS)


def read(content: str, media_type: str = "text/csv") -> list[tuple[str, str]]:
    """(heading, text) of each section."""
    parsed = parse(content.encode(), media_type)
    return [(" / ".join(one.headings), parsed.text[one.start : one.end]) for one in parsed.sections]


def refusal(content: str, media_type: str = "text/csv") -> tuple[str, str]:
    with pytest.raises(UnparsableDocument) as caught:
        parse(content.encode(), media_type)
    return caught.value.reason, str(caught.value)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_each_row_is_a_section_that_names_the_fields_whatever_parts_them(delimiter: str) -> None:
    assert read(table(delimiter)) == [
        ("Basel", BASEL), ("Koblenz", "Port: Koblenz. River: Mosel. Notes: At the Rhine too!"),
    ]  # fmt: skip


def test_tab_separated_values_are_read_the_same_and_have_their_own_type() -> None:
    assert read(table("\t"), "text/tab-separated-values") == read(table(","))
    assert media_type_of("a/ports.TSV") == "text/tab-separated-values"
    assert media_type_of("ports.csv") == "text/csv"


def test_a_tab_is_the_only_delimiter_of_tab_separated_values() -> None:
    assert read("Port, River\nBasel, Rhine\n", "text/tab-separated-values") == [
        ("Basel, Rhine", "Port, River: Basel, Rhine.")
    ]


def test_each_short_row_is_a_chunk_of_its_own_so_that_a_hit_is_one_row() -> None:
    parsed = parse(table(",").encode(), "text/csv")
    chunked = chunk(KEY, parsed, ChunkingParameters())
    assert [one.text for one in chunked.chunks] == [text for _, text in read(table(","))]
    assert all(parsed.text[one.start : one.end] == one.text for one in chunked.chunks)


def test_a_row_added_at_the_top_leaves_the_other_rows_their_chunks() -> None:
    def ids(content: str) -> set[str]:
        return {one.id for one in chunk(KEY, parse(content.encode(), "text/csv"), ChunkingParameters()).chunks}

    before, after = ids(table(",")), ids(table(",").replace("Basel", "Mainz,Rhine,Below Worms\r\nBasel"))
    assert before < after
    assert len(after) == 3


def test_quoted_fields_may_hold_delimiters_quotation_marks_and_line_ends() -> None:
    content = 'name,said\n"Doe, Jane","She said ""no"".\r\nThen she left."\n'
    assert read(content) == [("Doe, Jane", 'name: Doe, Jane. said: She said "no". Then she left.')]


def test_in_tab_separated_values_a_quotation_mark_that_fits_nowhere_is_a_character() -> None:
    content = 'part\tsize\n"Elbow" pipe\t5"\n'
    assert read(content, "text/tab-separated-values") == [('"Elbow" pipe', 'part: "Elbow" pipe. size: 5".')]
    assert refusal(content.replace("\t", ",")) == (
        "malformed", "The content is not CSV: a quotation mark in line 2 does not fit.",
    )  # fmt: skip


TSV = "text/tab-separated-values"


@pytest.mark.parametrize(
    ("row", "texts"),
    [
        ('"Doe"\t"She said ""no""."', ['name: Doe. said: She said "no".']),
        ('"Elbow" pipe\t5"', ['name: "Elbow" pipe. said: 5".']),
        ('"a" and "b"\t"', ['name: "a" and "b". said: ".']),
        ('"tis\tone\ntwas\t"', ['name: "tis. said: one.', 'name: twas. said: ".']),
        ('"Doe\tJane"\tno', ["name: Doe Jane. said: no."]),
        ('Doe\t"no\nand yes"\r\nEk\tno', ["name: Doe. said: no and yes.", "name: Ek. said: no."]),
        ('Doe\t"no\nEk\tyes"\n', ['name: Doe. said: "no.', 'name: Ek. said: yes".']),
        ('Doe\t"no\nEk\tyes\n', ['name: Doe. said: "no.', "name: Ek. said: yes."]),
        ('Doe\t""', ["name: Doe."]),
    ],
)
def test_a_field_of_tab_separated_values_is_quoted_where_marks_stand_around_it_and_fit(
    row: str, texts: list[str]
) -> None:
    assert [text for _, text in read(f"name\tsaid\n{row}", TSV)] == texts


def test_the_first_row_of_tab_separated_values_may_have_quoted_names() -> None:
    assert read('"first\nname"\t"said"\nDoe\tno\n', TSV) == [("Doe", "first name: Doe. said: no.")]
    assert read('"name\tor"\tsaid\n"Doe\nJane"\tno\n', TSV) == [("Doe Jane", "name or: Doe Jane. said: no.")]


def test_a_mark_in_the_first_row_of_tab_separated_values_joins_no_rows_to_it() -> None:
    """They have as many fields as it has without them."""
    assert [text for _, text in read('"size\tname\n5\tpipe\n6\telbow"\n7\tcap\n', TSV)] == [
        '"size: 5. name: pipe.', '"size: 6. name: elbow".', '"size: 7. name: cap.',
    ]  # fmt: skip
    assert [text for _, text in read('a\t"b\nc\td"\ne\tf\n', TSV)] == ['a: c. "b: d".', 'a: e. "b: f.']


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("a\n" + "b\n" * (MAX_TABLE_ROWS + 1), "more than 20,000 rows, empty ones counted"),
        ("a\tb\nc\t" + "d " * MAX_TABLE_ROW_CHARACTERS, "a row of more than 1,000,000 characters"),
        ("a\tb\nc\t" + "d" * (MAX_TABLE_FIELD_CHARACTERS + 1), "a field of more than 131,072 characters"),
    ],
)
def test_tab_separated_values_have_the_same_limits(content: str, what: str) -> None:
    assert refusal(content, TSV) == ("too_large", f"The TSV holds {what}. Send it in several parts.")


def test_marks_that_fit_nowhere_cost_no_time() -> None:
    for line in ('"', '"x', '""x\t', '"""x', '"\t"\t"', '""""x\t"'):
        content = f"a\tb\tc\td\n{line}\n" + f"{line}\n" * (MAX_TABLE_ROWS - 2)
        assert parse(content.encode(), TSV).text


def test_marks_that_fit_on_and_on_are_not_followed_to_the_end_from_each_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line begins what the next ones continue: 1,000 lines were half a million fields to read, and 20,000 two
    minutes of work. A row of more than four fields cannot be one of this table."""
    looks = 0
    find = csv_parser._find

    def counted(*asked: Any) -> tuple[int, int]:
        nonlocal looks
        looks += 1
        return find(*asked)

    monkeypatch.setattr(csv_parser, "_find", counted)
    found = read("a\tb\tc\td\n" + '"\t"b\n' * 1_000, TSV)
    assert found[0] == ('"', 'a: ". b: "b.')
    assert len(found) == 998, "the last lines make a row of four fields"
    assert looks < 8 * 1_000


def test_empty_fields_are_left_out_and_fields_without_a_name_have_the_number_of_their_column() -> None:
    assert read("a,,c\n1,2,,4\n,,,\n\n") == [("1", "a: 1. column 2: 2. column 4: 4.")]


def test_a_row_without_a_telling_first_field_is_named_by_its_number() -> None:
    long = "x" * 200
    assert [heading for heading, _ in read(f"id,text\n,first\n{long},second\n7,third\n")] == ["row 1", "row 2", "7"]


def test_a_first_line_may_say_the_delimiter() -> None:
    assert read("sep=;\r\nname;text\r\na, b;c\r\n") == [("a, b", "name: a, b. text: c.")]


def test_a_table_of_one_column_is_not_parted_at_a_comma_that_stands_in_some_rows() -> None:
    assert read("remark\nOne, two\nThree\n") == [("One, two", "remark: One, two."), ("Three", "remark: Three.")]


def test_commas_inside_of_fields_do_not_make_them_the_delimiter() -> None:
    content = "name;text\nA;one, two\nB;three, four, five\nC;six\n"
    assert [text for _, text in read(content)][1] == "name: B. text: three, four, five."


def test_addresses_in_fields_are_links() -> None:
    parsed: ParsedDocument = parse(b"name,page\nRhine,https://a.b/rhine.html\n", "text/csv")
    assert [(link.target, link.text) for link in parsed.links] == [("https://a.b/rhine.html",) * 2]


@pytest.mark.parametrize("content", ["Port,River\n", "Port,River\n,\n , \n", "Some words."])
def test_a_table_without_a_row_below_its_first_one_is_refused(content: str) -> None:
    reason, sentence = refusal(content)
    assert reason == "empty_content"
    assert "there is no row with content below the first one, which names the fields" in sentence


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("a\n" + "b\n" * (MAX_TABLE_ROWS + 1), "more than 20,000 rows, empty ones counted"),
        ("a,b\n" + "," * MAX_TABLE_COLUMNS + "c\n", "a row of more than 1,000 columns"),
        ("a,b\nc," + "d " * MAX_TABLE_ROW_CHARACTERS, "a row of more than 1,000,000 characters"),
        ("a,b\nc," + "d" * (MAX_TABLE_FIELD_CHARACTERS + 1), "a field of more than 131,072 characters"),
    ],
)
def test_what_exceeds_a_limit_is_refused_with_the_limit(content: str, what: str) -> None:
    assert refusal(content) == ("too_large", f"The CSV holds {what}. Send it in several parts.")


def test_what_is_just_within_the_limits_is_read() -> None:
    assert len(read("a\n" + "b\n" * MAX_TABLE_ROWS)) == MAX_TABLE_ROWS
    assert read("a,b\nc" + "," * (MAX_TABLE_COLUMNS - 1) + "d\n")[0][1] == "a: c. column 1000: d."
    assert csv.field_size_limit() == MAX_TABLE_FIELD_CHARACTERS


def test_a_nul_is_no_text() -> None:
    assert refusal("a,b\n1,\0\n")[0] == "undecodable"
