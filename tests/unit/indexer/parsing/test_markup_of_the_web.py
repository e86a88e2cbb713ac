"""What pages, feeds and exports look like outside: each row is one habit of a generator or an editor."""

import json

import pytest

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing import parse
from indexer.parsing.decoding import decode_text
from indexer.parsing.superscripts import script_marks
from schemas.events import decode_document_event
from schemas.settings import LimitSettings


def read(content: str, media_type: str = "text/html") -> ParsedDocument:
    return parse(content.encode(), media_type)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>seen</p><div style='color:red; DISPLAY : none'>x</div>", "seen"),
        ("<p>seen</p><div style='content-visibility: hidden'>y</div>", "seen\n\ny"),
        ("<p>seen</p><div role=tabpanel hidden>in a tab</div>", "seen\n\nin a tab"),
        ("<p>seen</p><div hidden=until-found>found</div>", "seen\n\nfound"),
        ("<div hidden id='S:0'><main><p>streamed</p></main></div>", "streamed"),
        ("<body style='visibility:hidden'><p>late</p></body>", "late"),
        ("<div><main>m</main></div><div><div><footer>f</footer></div></div>", "m"),
        ("<article>a<footer>Licence: free</footer></article>", "a\n\nLicence: free"),
        ("<nav><a href=a>One</a></nav>", "One"),
        ("<div class='cookie-banner'>We bake.</div><p>p</p>", "p"),
        ("<div class='cookie-banner'><h1>Banners</h1></div>", "Banners"),
        ("<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</rt></ruby>です", "漢字です"),
        ("<h2>Lock<a class='header-anchor' href='#l'>#</a></h2>x", "Lock\n\nx"),
        ("<h2>Lock<a class='anchor' href='#l'>Permalink</a></h2>x", "Lock\n\nx"),
        ("<h2><a class='header-anchor' href='#l'><span>Lock</span></a></h2>x", "Lock\n\nx"),
        ("<h2>Lock<span class='mw-editsection'>[<a href='/e'>bearbeiten</a>]</span></h2>x", "Lock\n\nx"),
        ("<p>A note.<a href='#r1'>↩</a></p>", "A note."),
        ("<p>2<sup>10</sup> m<sup>-2</sup> H<sub>2</sub>O 1<sup>st</sup> e<sup>n+1</sup>", "2^10 m^-2 H2O 1st e^(n+1)"),
        ("<p>Low.<sup>2</sup> High<sup><a href='#n'>3</a></sup> 101<sub>2</sub>", "Low.[2] High[3] 101_2"),
        ("<p>1<sup>1</sup>/<sub>2</sub> cups", "1 1/2 cups"),
        ("<math><msup><mn>10</mn><mn>6</mn></msup><mfrac><mn>1</mn><mn>2</mn></mfrac></math>", "10^61/2"),
        ("<pre><code><div>a</div><div>b<br></div><div>c</div></code></pre>", "a\nb\nc"),
        ("<pre><code><span class='line'><span class='ln'>1</span>a</span><br>b</code></pre>", "a\nb"),
        ("<table><tr><td class=gutter><pre>1\n2</pre></td><td><pre><code>a\nb</code></pre></td></tr></table>", "a\nb"),
        ("<table><tr><td class=line-number>42</td><td>Harbour</td></tr></table>", "42 | Harbour"),
    ],
)
def test_pages_are_read_as_they_are_shown(markup: str, text: str) -> None:
    assert read(markup).text == text


def test_the_storage_format_of_confluence_is_read() -> None:
    parsed = read(
        '<p>See <ac:link><ri:page ri:content-title="Tide &amp; sea" /></ac:link> and <ac:link><ri:page '
        'ri:content-title="B"/><ac:plain-text-link-body><![CDATA[b > a]]></ac:plain-text-link-body></ac:link>.</p>'
        '<ac:structured-macro ac:name="panel"><ac:parameter ac:name="title">Care</ac:parameter><ac:parameter '
        'ac:name="bgColor">red</ac:parameter><ac:rich-text-body><p>Wet.</p></ac:rich-text-body></ac:structured-macro>'
        "<ac:task-list><ac:task><ac:task-id>7</ac:task-id><ac:task-status>complete</ac:task-status><ac:task-body>Dry it"
        "</ac:task-body></ac:task></ac:task-list><ac:plain-text-body><![CDATA[if a < b:\n  go]]></ac:plain-text-body>"
        '<p><time datetime="2026-03-04"/> <![CDATA[never closed</p>'
    )
    assert parsed.text.startswith("See Tide & sea and b > a.\n\nCare\n\nWet.\n\n- ")
    assert "Dry it\n\nif a < b:\n  go\n\n2026-03-04" in parsed.text
    assert [link.target for link in parsed.links] == ["Tide & sea", "B"]
    assert not any(left in parsed.text for left in ("red", "7", "bgColor"))


@pytest.mark.parametrize(
    ("before", "text", "after", "around"),
    [
        ("m", "3", "", ("^", "")), ("3", "a", "", ("", "")), ("3", "®", "", ("", "")), ("", "14", "C", ("", "")),
        ("0", "6", "5", ("^", " ")), ("n", "o", " 3", ("", "")), (")", "2", "", ("^", "")), ("x", "[1]", "", ("", "")),
    ],
)  # fmt: skip
def test_superscripts_keep_numbers_apart(before: str, text: str, after: str, around: tuple[str, str]) -> None:
    assert script_marks(before, text, after, is_raised=True) == around


@pytest.mark.parametrize(
    ("text", "codec", "label"),
    [
        ("“€”", "cp1252", "latin1"), ("“€”", "cp1252", " US-ASCII "), ("ğ€", "cp1254", "iso-8859-9"),
        ("镕①", "gb18030", "x-gbk"), ("①髙", "cp932", "X-SJIS"), ("똠", "cp949", "ks_c_5601-1987"),
        ("日本", "iso2022_jp", "iso-2022-jp"), ("日本", "utf-16-le", "utf-16"), ("Ж", "koi8-r", "koi"),
    ],
)  # fmt: skip
def test_labels_mean_what_they_mean_to_browsers(text: str, codec: str, label: str) -> None:
    assert decode_text(text.encode(codec), f'text/plain; charset="{label}"') == text


def test_the_declaration_inside_is_that_of_the_document() -> None:
    page = (
        "<!-- <meta charset=koi8-r> --><form accept-charset=koi8-r><script charset=koi8-r></script><meta charset={}>Я"
    )
    assert "Я" in decode_text(page.format("cp1251").encode("cp1251"), "text/html", declared_inside=True)
    assert "Я" in decode_text(page.format("utf-16").encode(), "text/html", declared_inside=True)
    assert decode_text("Tide é".encode("utf-16-be"), "text/plain") == "Tide é"
    assert decode_text(b"\x93a\x81\x94", "text/plain; charset=iso-8859-1") == "“a\x81”"


LINE = ("Lift the ", "left", " lever.")


@pytest.mark.parametrize(
    "value",
    [
        {"type": "doc", "content": [{"type": "paragraph", "content": [{"type": "text", "text": one} for one in LINE]}]},
        [{"type": "p", "children": [{"text": "Lift the "}, {"text": "left", "bold": True}, {"text": " lever."}]}],
        {"root": {"type": "root", "children": [{"type": "paragraph", "children": [
            {"type": "text", "text": "Lift the "}, {"type": "link", "url": "https://a.b/", "children": [
                {"type": "text", "text": "left"}]}, {"type": "text", "text": " lever."}]}]}},
        {"ops": [{"insert": "Lift the "}, {"insert": "left", "attributes": {"bold": True}}, {"insert": " lever.\n"}]},
        [{"_type": "block", "style": "normal", "children": [{"_type": "span", "text": one} for one in LINE]}],
        {"nodeType": "document", "content": [{"nodeType": "paragraph", "content": [
            {"nodeType": "text", "value": one, "marks": []} for one in LINE]}]},
        [{"object": "block", "type": "paragraph", "paragraph": {"rich_text": [
            {"type": "text", "text": {"content": one}, "plain_text": one} for one in LINE]}}],
        {"text": "".join(LINE), "blocks": [{"type": "rich_text", "elements": [
            {"type": "rich_text_section", "elements": [{"type": "text", "text": one} for one in LINE]}]}]},
        {"body": {"content": [{"paragraph": {"elements": [{"textRun": {"content": one}} for one in LINE]}}]}},
        {"text": ["Lift the ", {"type": "bold", "text": "left"}, " lever."],
         "text_entities": [{"type": "plain", "text": one} for one in LINE]},
    ],
)  # fmt: skip
def test_rich_text_is_one_text_once(value: object) -> None:
    assert read(json.dumps({"name": "Lock", "pages": value}), "application/json").text == "Lift the left lever."


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([{"text": "First."}, {"text": "Second.", "by": "x"}], "First.\n\nSecond."),
        ([{"type": "quote", "text": "Hello there.", "by": "A"}, {"type": "text", "text": "Bye."}],
         "Hello there.\n\nBye."),
        ({"text": "Short.", "cause": "Sand came in through the strainer."},
         "Short.\n\nSand came in through the strainer."),
        ({"text": "Short.", "code": "E 17", "size": "12 mm"}, "Short."),
        ({"要約": "川は谷に沿って流れ、砂を海へ運ぶ。" * 15}, "川は谷に沿って流れ、砂を海へ運ぶ。" * 15),
        ([{"code": "E1", "hint": "Check the supply and start it again."}],
         "code: E1. hint: Check the supply and start it again."),
    ],
)  # fmt: skip
def test_running_text_of_json_is_read_and_records_stay_apart(value: object, text: str) -> None:
    assert read(json.dumps(value), "application/json").text == text


def test_words_of_json_that_are_left_out_are_noted() -> None:
    parsed = read(json.dumps({"text": "T.", "by": "Ann Lee", "logs": [{"text": "U.", "who": "Bo Li"}]}), "text/json")
    assert parsed.notes == ("Short values beside the text were left out: logs[0].who.",)


@pytest.mark.parametrize(
    ("content", "first"),
    [
        ("Dues\nMade: today\n\nShip,Fee\nLorne,4\nMaren,7\n", "Ship: Lorne. Fee: 4."),
        ("Account;DE1\nOwner;Ann\n\nDay;Text;Sum\n1.2.26;Rent, flat;-5\n2.2.26;Fee;-3\n",
         "Day: 1.2.26. Text: Rent, flat. Sum: -5."),
        ("Dues,,\nShip,Berth,Fee\nLorne,4,120\nMaren,7,95\n", "Ship: Lorne. Berth: 4. Fee: 120."),
        ("# by x\n# units: m, s\nlength,time\n1,2\n3,4\n", "length: 1. time: 2."),
        ("#id,name\n1,Ann\n2,Bo\n", "#id: 1. name: Ann."),
        ("sep=;\nDues\n\nA;B\n1;2\n", "A: 1. B: 2."),
        ("a,b\n1,2,3,4\n5,6,7,8\n", "a: 1. b: 2. column 3: 3. column 4: 4."),
        ("remark\nOne, two\nThree, four\n", "remark: One, two."),
    ],
)  # fmt: skip
def test_the_names_of_a_table_are_found_below_what_is_above_it(content: str, first: str) -> None:
    parsed = read(content, "text/csv")
    assert parsed.text.startswith(first) or content.strip("#, sep=;\n")[:4] in parsed.text.partition("\n")[0]
    assert first in [parsed.text[one.start : one.end] for one in parsed.sections if one.headings]


@pytest.mark.parametrize(
    ("markup", "title"),
    [
        ("<a><article-title>Sand <i>waves</i><xref>*</xref></article-title><p><title>Abstract</title></p></a>",
         "Sand waves"),
        ("<patent><invention-title>Weir of H<sub>2</sub>O</invention-title><title>Field</title></patent>",
         "Weir of H2O"),
        ("<r><citation>By A. <article-title>No</article-title></citation><sec><title>Own</title></sec></r>", "Own"),
        ("<topic><title>Pumps<indexterm>pump</indexterm></title><body><p>x</p></body></topic>", "Pumps"),
        ("<TEI><teiHeader><title>Log</title></teiHeader><text><head>I</head></text></TEI>", "Log"),
    ],
)  # fmt: skip
def test_the_title_of_xml_is_that_of_the_whole(markup: str, title: str) -> None:
    assert read(markup, "application/xml").title == title


def test_entities_are_characters_few_words_or_as_written() -> None:
    dtd = '<!DOCTYPE r SYSTEM "r.dtd" [<!NOTATION T SYSTEM "T"><!ENTITY f SYSTEM "f" NDATA T><!ENTITY co "Weir Ltd">]>'
    parsed = read(f"{dtd}<r><p>&agr;&OHgr; &co; &legal;</p><pre>&bgr;</pre></r>", "application/xml")
    assert parsed.text == "αΩ Weir Ltd &legal;\n\nβ"
    assert parsed.notes == ("Entities that only the DTD declares are left as written: &legal;.",)
    with pytest.raises(UnparsableDocument) as caught:
        read(f'<!DOCTYPE r [<!ENTITY a "{"x" * 2_000}">]><r>{"&a;" * 100}</r>', "application/xml")
    assert caught.value.reason == "unsafe"


def test_numbers_in_tables_of_xml_keep_their_value() -> None:
    table = "<table><tr><td><p>a</p><p>b</p></td><td>10<sup>5</sup></td></tr></table>"
    assert read(table, "application/xml").text == "a b | 10^5"


@pytest.mark.parametrize("content_type", ["", "application/cloudevents+json"])
def test_a_byte_order_mark_before_a_record_is_skipped(content_type: str) -> None:
    envelope = '\ufeff{"id": "a", "content": "x", "specversion": "1.0", "type": "made", "data": {"text": "x"}}'
    headers = [("content-type", content_type.encode())] if content_type else []
    event = decode_document_event(b"default/a", envelope.encode(), headers, LimitSettings())
    assert event.key.document_id == "a"
    assert parse('\ufeff{"text": "x"}'.encode(), "application/json").text == "x"
