"""HTML pages, good and bad."""

import pytest

from indexer.documents import Figure, ParsedDocument
from indexer.parsing import parse
from indexer.parsing.html_nesting import limit_nesting


def read(content: str) -> ParsedDocument:
    return parse(content.encode(), "text/html; charset=utf-8")


def test_what_is_not_for_the_reader_is_left_out() -> None:
    parsed = read(
        "<html><head><title>T</title><style>s</style></head><body><nav>n</nav><div role=navigation>r</div>"
        "<script>x</script><p hidden>h</p><article><p>Kept</p><footer>Sources</footer></article>"
        "<footer>Imprint</footer></body></html>"
    )
    assert parsed.text == "Kept\n\nSources"


def test_the_title_is_that_of_the_page_else_its_first_heading() -> None:
    assert read("<title> The\npage </title><h1>Heading</h1>x").title == "The page"
    assert read("<h1>The <i>heading</i></h1>x").title == "The heading"
    assert read("<p>x").title is None


def test_meta_elements_that_describe_the_page_become_fields() -> None:
    parsed = read("<meta name=Author content='Ada  L.'><meta name=theme content=w><meta name=DC.date content=1843>x")
    assert parsed.fields == (("author", "Ada L."), ("dc.date", "1843"))


def test_a_figure_is_held_together_by_its_caption() -> None:
    parsed = read("<p>a</p><figure><img alt='a map'><figcaption>The <b>bed</b></figcaption></figure><p>c</p>")
    assert parsed.text == "a\n\na map\n\nThe bed\n\nc"
    assert parsed.figures == (Figure(3, 17, "The bed"),)


def test_an_image_takes_the_figure_line_behind_it() -> None:
    parsed = read("<p><img src=x></p><p>Figure 4. The bed.</p>")
    assert [figure.caption for figure in parsed.figures] == ["Figure 4. The bed."]


def test_preformatted_prose_is_joined_and_code_is_kept() -> None:
    prose = "The current is fastest in the thalweg of a river,\nand boats going down keep to it."
    parsed = read(f"<pre>{prose}</pre><pre><code>a = 1\n  b</code></pre>")
    assert parsed.text == prose.replace("\n", " ") + "\n\na = 1\n  b"


def test_numbered_lists_count_from_their_start() -> None:
    assert read("<ol start=3><li>a<ul><li>b</ul><li>c</ol>").text == "3. a\n  - b\n4. c"


def test_end_tags_that_may_be_missing_are_not_missed() -> None:
    parsed = read("<p>one<p>two" + "<p>x" * 1_000)
    assert parsed.text.count("\n\n") == 1_001


def test_markup_of_ordinary_depth_is_left_as_it_is() -> None:
    markup = "<div>" * 200 + "<p>x" + "</div>" * 200 + "<p><b>y</b>" * 300
    assert limit_nesting(markup) is markup


@pytest.mark.processor_seconds(20)
@pytest.mark.parametrize(
    "bomb",
    [
        "<div>" * 100_000,
        "<font>" * 100_000,
        "<table><tr><td>" * 50_000,
        "<div><table><tr><td></div></table>" * 50_000,
        "<svg><title>" + "<div>" * 100_000,
        "<noscript>" + "<div>" * 100_000,
        "".join(f"<p><b a={number}>t" for number in range(20_000)),
        "<a " * 100_000,
        "<x>" * 100_000 + "</x>" * 100_000,
    ],
)
def test_deep_nesting_costs_little_and_loses_no_words(bomb: str) -> None:
    parsed = read("<p>begin</p>" + bomb + ">end")
    assert parsed.text.startswith("begin")


def test_links_side_by_side_are_apart() -> None:
    parsed = read("<p><a href='a.html'>Clock skew</a><a href='b.html'>An upgrade</a>s</p>")
    assert parsed.text.strip() == "Clock skew An upgrades"
