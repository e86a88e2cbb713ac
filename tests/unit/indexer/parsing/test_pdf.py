"""PDF: forms, comments, columns, hyphens and superscripts, on pages drawn by hand."""

import pytest

from indexer.documents import ParsedDocument
from indexer.parsing import parse
from tests.support.fixtures.office_files import pdf_file

FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"
Drawn = tuple[float, float, str] | tuple[float, float, str, float]  # x, y, text, size


def read(
    *pages: list[Drawn],
    annotations: str = "",
    form: str = "",
    page: str = "",
    matrix: str = "1 0 0 1",
    show: str = "({}) Tj",
) -> ParsedDocument:
    """A PDF of these pages; annotations are those of each."""
    names = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [b"<</Type/Catalog/Pages 2 0 R/AcroForm<<%b>>>>" % form.encode()]
    objects += [b"<</Type/Pages/Count %d/Kids[%b]>>" % (len(pages), names.encode()), FONT]
    for number, drawn in enumerate(pages):
        rest = f"/Annots[{annotations}]{page}/Contents {5 + 2 * number} 0 R"
        resources = "/MediaBox[0 0 595 842]/Resources<</Font<</F 3 0 R>>>>"
        objects.append(f"<</Type/Page/Parent 2 0 R{resources}{rest}>>".encode())
        stream = "\n".join(_drawn(*one, matrix=matrix, show=show) for one in drawn).encode("cp1252")
        objects.append(b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream))
    return parse(pdf_file(objects), "application/pdf")


def _drawn(x: float, y: float, text: str, size: float = 11, *, matrix: str, show: str) -> str:
    return f"BT /F {size} Tf {matrix} {x} {y} Tm {show.format(text)} ET"


def lines(*texts: str, x: float = 60, top: float = 700) -> list[Drawn]:
    return [(x, top - 14 * number, text) for number, text in enumerate(texts)]


def widget(kind: str, rectangle: str, more: str) -> str:
    return f"<</Type/Annot/Subtype/Widget/FT/{kind}/Rect[{rectangle}]/F 4{more}>>"


FORM = [
    (60.0, 700.0, "First name:"),
    (300.0, 700.0, "Last name:"),
    (60.0, 660.0, "Port:"),
    (60.0, 600.0, "It is true."),
]
BUTTON = "/AP<</N<</Yes<<>>/Off<<>>>>>>"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (widget("Tx", "130 695 280 713", "/T(a)/V(Ingrid)"), "First name: Ingrid Last name:"),
        (widget("Tx", "370 695 500 713", "/T(a)/V(Berg)"), "First name: Last name: Berg"),
        (widget("Tx", "130 695 280 713", "/T(a)/V<FEFF00C500730061>"), "First name: Åsa Last name:"),
        (widget("Tx", "90 600 280 674", "/T(a)/V(two\\rlines)/Ff 4096"), "Port: two lines"),
        (widget("Ch", "90 655 200 673", "/T(a)/V(NVK)/Opt[[(NVK)(Narvik)][(BGO)(Bergen)]]/Ff 131072"), "Port: Narvik"),
        (
            widget("Ch", "90 655 200 673", "/T(a)/V[(Oulu)(Basel)]/Opt[(Oulu)(Graz)(Basel)]/Ff 2097152"),
            "Port: Oulu, Basel",
        ),
        (widget("Btn", "130 598 142 610", f"/T(f.insured[0])/V/Yes/AS/Yes{BUTTON}"), "It is true. insured: Yes"),
        (widget("Btn", "130 598 142 610", f"/T(x)/TU(Insured?)/AS/Off{BUTTON}"), "It is true. Insured?: Off"),
        (widget("Tx", "60 640 280 650", "/T(a)/V(alone)"), "Port:\n\nalone\n\nIt is true."),
    ],
)
@pytest.mark.parametrize("is_listed", [True, False])
def test_a_value_stands_behind_its_label(fields: str, text: str, is_listed: bool) -> None:
    if not is_listed and "/Tx" not in fields:
        return
    parsed = read(FORM, annotations=fields, form=f"/Fields[{fields}]" if is_listed else "")
    assert text in parsed.text


def test_what_a_form_hides_is_left_out() -> None:
    secret = widget("Tx", "90 655 200 673", "/T(a)/V(s3cret)/Ff 8192")
    hidden = widget("Tx", "90 655 200 673", "/T(b)/V(unseen)").replace("/F 4", "/F 2")
    radio = widget("Btn", "130 598 142 610", f"/T(way)/Ff 32768/AS/Off{BUTTON}")
    fields = secret + hidden + radio
    assert read(FORM, annotations=fields, form=f"/Fields[{fields}]").text == read(FORM).text


def test_text_boxes_are_of_the_page_and_comments_follow_it() -> None:
    box = "<</Type/Annot/Subtype/FreeText/Contents(berth 7)/Rect[100 655 300 673]>>"
    note = "<</Type/Annot/Subtype/Text/Contents(Check the depth.)/Rect[500 690 520 710]>>"
    mark = "<</Type/Annot/Subtype/Highlight/Contents(Why?)/Rect[60 655 90 673]>>"
    popup = "<</Type/Annot/Subtype/Popup/Contents(twice)/Rect[0 0 9 9]>>"
    link = "<</Type/Annot/Subtype/Link/Contents(where)/Rect[0 0 9 9]>>"
    parsed = read(FORM, annotations=box + note + mark + popup + link)
    assert parsed.text.endswith("Port: berth 7\n\nIt is true.\n\nCheck the depth.\n\nWhy?")


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ("The fault ORA-", "00942 is old", "ORA-00942"),
        ("see CVE-2026-", "12345 there", "CVE-2026-12345"),
        ("part KX-", "9B of it", "KX-9B"),
        ("the years 2019-", "2021 were", "2019-2021"),
        ("the pre-", "Roman wall", "pre-Roman"),
        ("https://example.org/gate-", "control is", "https://example.org/gate-control"),
        ("mail an.foo-", "bar@example.org now", "an.foo-bar@example.org"),
        ("a state-of-the-", "art quay", "state-of-the-art quay"),
        ("the snake_foo-", "bar name", "snake_foo-bar"),
        ("by e-", "mail", "e-mail"),
        ("a well-", "known wall", "well-known"),
        ("a long-", "term plan is long and has a term", "long-term"),
        ("the foo-", "bar of foo-bar", "foo-bar of"),
        ("they man-", "aged it well", "managed it"),
        ("pre-", "and post-war walls", "pre- and post-war"),
        ("Ein-", "und Ausfuhr", "Ein- und Ausfuhr"),
        ("from -", "5 to 5", "from -5 to 5"),
        ("this -", "and that", "this - and that"),
        ("the har-", "bour \\(old\\)", "the harbour (old)"),
        ("l'har-", "monie", "l'harmonie"),
    ],
)
def test_a_hyphen_at_the_end_of_a_line(first: str, second: str, text: str) -> None:
    assert text in read(lines("Some words stand above it", first, second)).text


LEFT = (
    "The harbour was built in 1871 by",
    "a company of seven men who had",
    "come from the north. They dug a",
    "basin of nine acres and lined it",
)
RIGHT = (
    "with granite from the island. In",
    "the winter of 1890 the ice broke",
    "the east wall, and it was made",
    "anew of concrete in two years.",
)
THIRD = (
    "Since then the quay has stood",
    "and no ice has come so far as",
    "the wall, although the winters",
    "were no milder than before.",
)


@pytest.mark.parametrize("columns", [(LEFT, RIGHT), (LEFT, RIGHT, THIRD)])
@pytest.mark.parametrize("width", [180, 240])
def test_columns_drawn_line_by_line_are_read_one_after_the_other(
    columns: tuple[tuple[str, ...], ...], width: int
) -> None:
    drawn: list[Drawn] = [(60, 740, "A heading that spans all of the columns and so ends none of them")]
    for number in range(4):
        drawn += [(40 + at * width, 700 - 14 * number, column[number]) for at, column in enumerate(columns)]
    if width * len(columns) < 600:
        assert " ".join(read(drawn).text.split()).endswith(" ".join(" ".join(column) for column in columns))


def test_columns_may_be_drawn_with_one_operator() -> None:
    drawn: list[Drawn] = []
    for number, (left, right) in enumerate(zip(LEFT, RIGHT, strict=True)):
        drawn.append((60, 700 - 14 * number, f"({left}) {480 * len(left) - 22_000} ({right})"))
    assert read(drawn, show="[{}] TJ").text == " ".join(LEFT + RIGHT)


@pytest.mark.parametrize(
    "rows",
    [
        [
            ("Port", "Depth"),
            ("Narvik in the north", "12 metres at the quay"),
            ("Basel on the Rhine", "4 metres all year"),
        ],
        [
            ("quay", "built of granite blocks"),
            ("slip", "lets boats into water"),
            ("dock", "takes ships of nine metres"),
        ],
        [("Chapter one of it", "7"), ("chapter two of it", "19"), ("chapter three of it", "31")],
    ],
)
def test_a_table_is_read_by_its_rows(rows: list[tuple[str, str]]) -> None:
    drawn = [
        (x, 700.0 - 14 * number, cell)
        for number, row in enumerate(rows)
        for x, cell in zip((60.0, 300.0), row, strict=True)
    ]
    assert read([*drawn]).text == " ".join(cell for row in rows for cell in row)


def raised(*pieces: str) -> list[Drawn]:
    """A line of pieces; those in `^…^` are superscripts, in `_…_` subscripts. Letters are as wide as `n`."""
    drawn: list[Drawn] = []
    x = 60.0
    for piece in pieces:
        text, rise = piece.strip("^_"), {"^": 4, "_": -2}.get(piece[0], 0)
        size = 7 if rise else 11
        drawn.append((x, 700 + rise, text, size))
        x += size * sum(0.278 if one in " .,t" else 0.556 for one in text)
    return drawn


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (("about 10", "^6^", " nuns"), "about 10^6 nuns"),
        (("about 10", "^-9^", "."), "about 10^-9."),
        (("on 12 n", "^2^"), "on 12 n^2"),
        (("as he said", "^12^", " on"), "as he said 12 on"),
        (("he said.", "^3^", " Then"), "he said. 3 Then"),
        (("^4^", "See nothing"), "4 See nothing"),
        (("H", "_2_", "O in 2019"), "H2O in 2019"),
        (("in 2019 and 10-6 and CO2",), "in 2019 and 10-6 and CO2"),
    ],
)
def test_a_superscript_is_not_glued_to_a_number(pieces: tuple[str, ...], text: str) -> None:
    assert read(raised(*pieces)).text == text


@pytest.mark.parametrize(
    ("matrix", "page"), [("0 1 -1 0", "/Rotate 90"), ("0 -1 1 0", "/Rotate 270"), ("0 1 -1 0", "")]
)
def test_turned_text_has_paragraphs_too(matrix: str, page: str) -> None:
    turn = -1 if matrix.startswith("0 1") else 1
    places = [(300 - turn * 14 * number, 300.0) for number in (0, 1, 6)]
    drawn = [(x, y, f"line {number} of the page") for number, (x, y) in enumerate(places)]
    assert read(drawn, page=page, matrix=matrix).text == "line 0 of the page line 1 of the page\n\nline 2 of the page"


def test_heads_and_feet_that_repeat_stay_once() -> None:
    pages = [
        [(60.0, 800.0, "A guide to rivers"), *lines(f"The text of part {name}."), (60.0, 40.0, f"Page {number} of 4")]
        for number, name in enumerate(("one", "two", "three", "four"), start=1)
    ]
    parsed = read(*pages)
    assert parsed.text.count("A guide to rivers") == parsed.text.count("Page") == 1
    assert [parsed.page_at(parsed.text.index(f"part {name}")) for name in ("one", "four")] == [1, 4]
    tables = [[(60.0, 800.0, f"{number * 37} tons of sand"), *lines("Text.")] for number in range(1, 5)]
    assert all(f"{number * 37} tons" in read(*tables).text for number in range(1, 5))
