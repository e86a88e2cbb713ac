"""What note takers and site generators add to Markdown."""

import pytest

from indexer.documents import ParsedDocument
from indexer.parsing import parse


def read(content: str, media_type: str = "text/markdown") -> ParsedDocument:
    return parse(content.encode(), media_type)


@pytest.mark.parametrize(
    "text",
    [
        "Put <your-key> there, copy <source> to <target folder>.",
        "Use List<A>, Set<Label> and Map<String, List<Integer>>.",
        "When a<b and c>d, x <- y and y <= z.",
        "A bound <T extends Comparable> holds at <host:port>.",
        "<key>",
        "It costs $5 or $7, US$5, US$7, or $2-$3; set $HOME/bin:$PATH.",
        "The gate stands if $q = a*b*c$, and $$x_1*x_2$$.",
        "In `a[[i]]`, m[[1]] and [[1, 2], [3, 4]], or if [[ -f x ]] holds.",
        "It is 50%% and then 60%% of {a, b}, {{.Name}}.",
        "As a == b and c == d.",
        "!!! Important thing",
    ],
)
def test_what_only_looks_like_markup_is_text(text: str) -> None:
    assert read(text).text == text.replace("`", "")
    assert read(f"- {text}\n\n| a |\n|---|\n| b |\n").text.startswith(f"- {text.replace('`', '')}")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("One <b>two</b> <kbd>F1</kbd><br>three<!-- four --> <a name='x'></a>six </p>", "One two F1\nthree six"),
        ("One <script>alert(two)</script> three <style>*four* 5</style> six", "One three six"),
        ("<details>\n<summary>One</summary>\n\ntwo *three*\n\n</details>", "One\n\ntwo three"),
        ("<key>\nis *here*", "<key> is here"),
        ("<div>a List<T> of it</div>", "a List<T> of it"),
        ("# For <you>", "For <you>"),
        ("\\(a*b*c\\), \\\\(p_1\\\\) and \\(no formula\\)", "$a*b*c$, $p_1$ and (no formula)"),
        ("\\[\nx_1*x_2\n\\]", "$$x_1*x_2$$"),
        ("> $$\n> x_1 * y_1\n> $$", "$$ x_1 * y_1 $$"),
        ("$5 and *$10*, but $x*y*z$", "$5 and $10, but $x*y*z$"),
        ("Old[^1], again[^1]^[or *so*].\n\n[^1]: Built in 1871.", "Old, again (or so).\n\nBuilt in 1871."),
        ("H~2~O, 10^6^, ~5 and ==lit up==. ^block1", "H2O, 10^6, ~5 and lit up."),
        ("%% a note %% One %%two%% three\n\n%%\nfour\n\nfive\n%%", "One three"),
        ("> [!warning]- High *water*\n> Stay.", "Warning: High water\n\nStay."),
        ("> [!NOTE]\n> Stay.", "Note\n\nStay."),
        (":::tip Look {here}\n\nUp.\n\n:::", "Tip: Look {here}\n\nUp."),
        ("::::danger[Keep *off*]{#x}\nIce.\n::::", "Danger: Keep off\n\nIce."),
        ('!!! note "Gates"\n    Two *gates*.\n\n    ```\n    if x:\n        y\n    ```\nEnd.',
         "Note: Gates\n\nTwo gates.\n\nif x:\n    y\n\nEnd."),
        ('=== "Linux"\n\n    - apt\n\n=== "Mac"\n\n    brew', "Linux\n\n- apt\n\nMac\n\nbrew"),
        ("- a\n\n    ??? tip\n        b\n\n    c", "- a\n  Tip\n  b\n  c"),
        ("## Gates {#g .wide}\n\n![a](b.png){ width='9' } [c](d){: .e}\n{: .f}", "Gates\n\na c"),
    ],
)  # fmt: skip
def test_what_is_added_is_read_as_it_is_shown(content: str, text: str) -> None:
    assert read(content).text.endswith(text)


@pytest.mark.parametrize(
    "code", ["[[a]] %% b %% c", "!!! note\n    a", ":::tip", "\\(x*y\\)", "{/* a */}\nimport b from 'c'"]
)
def test_code_is_left_as_it_is(code: str) -> None:
    assert read(f"```\n{code}\n```\n\n[[a]]", "text/mdx").text == f"{code}\n\na"


@pytest.mark.parametrize(
    ("written", "shown", "target"),
    [
        ("[[Pump]]", "Pump", "wiki:Pump"),
        ("[[Pump station|the pump]]", "the pump", "wiki:Pump%20station"),
        ("[[Pump#Motor]]", "Pump > Motor", "wiki:Pump"),
        ("[[Pump#^a1b2]]", "Pump", "wiki:Pump"),
        ("![[low/Pump_a_b]]", "low/Pump_a_b", "wiki:low/Pump_a_b"),
        ("![[pump.PNG|300]]", "pump.PNG", None),
        ("[[Low/Pump]]: it hums", "it hums", "wiki:Low/Pump"),
        ("[[#Motor]]", "Motor", None),
        ("[[Pump]](there.md)", "[Pump]", "there.md"),
        ("[[Pump]]\n\n[Pump]: there.md", "[Pump]", "there.md"),
        ("| a |\n|---|\n| [[Pump\\|it]] |", "it", "wiki:Pump"),
    ],
)
def test_wiki_links_name_notes(written: str, shown: str, target: str | None) -> None:
    parsed = read(written)
    assert parsed.text.endswith(shown)
    assert [link.target for link in parsed.links] == ([target] if target else [])


def test_mdx_is_read_without_its_modules_comments_and_components() -> None:
    content = (
        "---\ntitle: One\n---\nimport Tabs from '@theme/Tabs';\nimport {B} from \"b\";\n\n"
        "export const a = {\n  b: 1,\n};\n\n{/* gone *a* */}\n\n"
        '<Tabs group="x">\n  <TabItem value="y" label="Yarn">\n\n    Add *it*.\n\n  </TabItem>\n</Tabs>\n\n'
        'Run <Badge text="new" className="A b" about="And more" /> '
        "of <Box style={{a: {b: 1}}}>Promise<T></Box> {props.x}.\n"
    )
    assert read(content, "text/mdx").text == "Yarn\n\nAdd it.\n\nRun new And more of Promise<T> {props.x}."


@pytest.mark.processor_seconds(30)
@pytest.mark.parametrize(
    "content",
    [
        "$a",
        "[[a",
        "%%a ",
        "\\(a",
        "\\[a",
        "<b>",
        "<A b={",
        "^[a",
        "a$1$2*",
        "!!! a\n    ",
        "==a",
        "{#a ",
        "</A>",
        "<A b='",
    ],
)
def test_additions_made_to_be_slow_are_read_all_the_same(content: str) -> None:
    for text in (content * 60_000, f"{content}\n" * 40_000):
        assert parse(f"{text}\n\nend".encode(), "text/mdx").text.endswith("end")


@pytest.mark.parametrize(
    ("head", "fields"),
    [
        ('+++\ntitle = "One"\ndate = 2026-01-09\nn = 1.50\ntags = ["a", "b"]\n[p]\nq = true\n+++\n',
         ["title", "One", "date", "2026-01-09", "n", "1.50", "tags", "a", "tags", "b", "p.q", "true"]),
        ('{\n "title": "One",\n "n": 1.50, "none": null\n}\n\n', ["title", "One", "n", "1.50"]),
        (';;;\n{"title": "One"}\n;;;\n', ["title", "One"]),
        ('---toml\ntitle = "One"\n---\n', ["title", "One"]),
        ("\ufeff---\ntitle: One\ntags: [a]\ntags: [b]\n...\n", ["title", "One", "tags", "a", "tags", "b"]),
    ],
)  # fmt: skip
def test_front_matter_has_its_languages(head: str, fields: list[str]) -> None:
    for content in (f"{head}Text.", f"{head}Text.".replace("\n", "\r\n")):
        parsed = read(content)
        assert ([part for field in parsed.fields for part in field], parsed.title, parsed.text) == (
            fields,
            "One",
            "Text.",
        )
        assert parsed.notes == ()


@pytest.mark.parametrize(
    ("content", "notes"),
    [
        ('+++\ntitle = "One\n+++\nText.', "is not TOML"),
        ('+++\ntitle = "One"\n\nText.', "no line `+++` ends it"),
        ('{"title": "One",}\n\nText.', "is not JSON"),
        (";;;\n[1]\n;;;\nText.", "is not JSON"),
        ("+++\na = 1\n" + "#\n" * 40_000 + "+++\nText.", "no object of up to 65,536 characters"),
        ('{"title": "Text."}', None),
        ("{title} Text.", None),
    ],
)
def test_front_matter_that_cannot_be_read_stays_text(content: str, notes: str | None) -> None:
    parsed = read(content)
    assert "Text." in parsed.text
    assert parsed.text[:2] == content[:2]
    assert [notes in note for note in parsed.notes if notes] == ([True] if notes else [])
