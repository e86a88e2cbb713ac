"""Mail, subtitles, notebooks, AsciiDoc, Org and LaTeX: what is read, and what is noted or refused."""

import json
from email.message import EmailMessage

import pytest

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing import parse


def read(content: str | bytes, media_type: str) -> ParsedDocument:
    return parse(content.encode() if isinstance(content, str) else content, media_type)


def sections(parsed: ParsedDocument) -> dict[tuple[str, ...], str]:
    return {each.headings: parsed.text[each.start : each.end] for each in parsed.sections}


def message(subject: str = "Tide tables für März", text: str = "The tide is high.") -> EmailMessage:
    made = EmailMessage()
    made["Subject"], made["From"], made["Date"] = subject, "Ann <ann@example.org>", "Mon, 02 Mar 2026 10:00:00 +0000"
    made.set_content(text)
    return made


def test_message_is_its_fields_and_its_body() -> None:
    parsed = read(bytes(message()), "message/rfc822")
    assert parsed.title == "Tide tables für März"
    assert dict(parsed.fields)["from"] == "Ann <ann@example.org>"
    assert parsed.text.endswith("The tide is high.")
    assert "Subject: Tide tables für März" in parsed.text


def test_body_is_the_html_where_there_is_one() -> None:
    made = message()
    made.add_alternative("<h2>Times</h2><p>High at <b>six</b>.</p>", subtype="html")
    parsed = read(bytes(made), "message/rfc822")
    assert sections(parsed)[("Times",)] == "High at six."
    assert "The tide is high." not in parsed.text


def test_attachments_are_read_by_their_own_formats_and_others_noted() -> None:
    made = message()
    made.add_attachment(b"# Note\n\nBring a rope.", maintype="application", subtype="octet-stream", filename="n.md")
    made.add_attachment(b"x,y\n1,2", maintype="text", subtype="csv", filename="t.csv")
    made.add_attachment(message("Inner", "Inside."))
    made.add_attachment(b"\x89PNG\r\n\x1a\n", maintype="image", subtype="png", filename="moon.png")
    parsed = read(bytes(made), "message/rfc822")
    found = sections(parsed)
    assert found[("n.md", "Note")] == "Bring a rope."
    assert any(headings[:1] == ("t.csv",) and "y: 2" in text for headings, text in found.items())
    assert "Inside." in parsed.text
    assert ("Inner",) in found
    assert len(parsed.notes) == 1
    assert "'moon.png' was left out" in parsed.notes[0]


@pytest.mark.parametrize("as_file", [True, False])
def test_messages_in_messages_end_somewhere(as_file: bool) -> None:
    made = message("0", "Innermost.")
    for number in range(1, 6):
        outer = message(str(number), f"Level {number}.")
        if as_file:
            outer.add_attachment(bytes(made), maintype="application", subtype="octet-stream", filename="m.eml")
        else:
            outer.add_attachment(made)
        made = outer
    parsed = read(bytes(made), "message/rfc822")
    assert "Level 2." in parsed.text
    assert "Innermost." not in parsed.text
    assert any("3 levels" in note for note in parsed.notes)


@pytest.mark.parametrize(
    ("charset", "body"), [("iso-8859-1", "Gr\xfc\xdfe".encode("latin-1")), ("x-unknown", "Gr\xfc\xdfe".encode())]
)
def test_body_is_decoded_by_its_charset_or_as_utf_8(charset: str, body: bytes) -> None:
    head = f"Subject: x\nContent-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n\n".encode()
    assert read(head + body, "message/rfc822").text.endswith("Gr\xfc\xdfe")


def test_mailbox_has_a_section_for_each_message() -> None:
    parts = [b"From ann@example.org Mon Mar  2 10:00:00 2026\n" + bytes(message(name, name * 3)) for name in "ab"]
    found = sections(read(b"\n".join(parts), "application/mbox"))
    assert found[("a",)].endswith("aaa")
    assert found[("b",)].endswith("bbb")


@pytest.mark.parametrize(
    ("media_type", "content"),
    [
        ("message/rfc822", "Only words, no header."),
        ("application/mbox", "Subject: no line before it\n\nWords."),
        ("text/vtt", "WEBVTT\n\nNo cue."),
        ("application/x-ipynb+json", "{}"),
        ("application/x-ipynb+json", "[1]"),
        ("application/x-ipynb+json", '{"cells": [1]}'),
        ("application/x-ipynb+json", '{"cells": '),
    ],
)
def test_what_is_of_another_format_is_refused(media_type: str, content: str) -> None:
    with pytest.raises(UnparsableDocument) as refused:
        read(content, media_type)
    assert refused.value.reason == "malformed"


SUBTITLES = """WEBVTT - A talk

NOTE Nobody says this.

intro
00:01.000 --> 00:04.000 align:start
<v Ann>Welcome to the <i>harbour</i> &amp; its tides.</v>

00:00:36.000 --> 00:00:37.000
<v.loud Bob>The tide

00:00:38.000 --> 00:00:50.000
is high.

00:00:52.000 --> 00:00:54.000
is high.

01:02:03.000 --> 01:02:04.000
Good bye.
"""


def test_subtitles_are_what_is_said_under_the_times() -> None:
    assert sections(read(SUBTITLES, "text/vtt")) == {
        ("00:00:01",): "Ann: Welcome to the harbour & its tides.",
        ("00:00:36",): "Bob: The tide is high.",
        ("01:02:03",): "Good bye.",
    }
    subrip = (
        "1\n00:00:01,000 --> 00:00:04,000\nHello there.\n{\\an8}<b>General</b>\n\n2\n00:00:05,0 --> 00:00:06,0\nWell."
    )
    assert read(subrip, "application/x-subrip").text == "Hello there. General Well."


def test_notebook_is_its_text_code_and_output() -> None:
    code = {
        "cell_type": "code",
        "source": ["x = 1\n", "print('```')"],
        "outputs": [
            {"output_type": "stream", "text": ["```\n"]},
            {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": ["<Figure>"]}},
        ],
    }
    cells = [
        {"cell_type": "markdown", "source": "# Tides\n\nHow **high**."},
        code,
        {"cell_type": "raw", "source": "Raw."},
    ]
    parsed = read(json.dumps({"cells": cells, "nbformat": 4}), "application/x-ipynb+json")
    assert parsed.title == "Tides"
    assert sections(parsed)[("Tides",)] == "How high.\n\nx = 1\nprint('```')\n\n```\n\n<Figure>\n\nRaw."
    assert len(parsed.verbatim) == 3


def test_notebook_of_version_3() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": "Old"},
        {"cell_type": "code", "input": "y = 2", "outputs": []},
    ]
    parsed = read(json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3}), "application/x-ipynb+json")
    assert sections(parsed) == {("Old",): "y = 2"}


ASCIIDOC = """= Guide to the *Gate*
Ann Smith <ann@example.org>
:version: 2.1
:toc:

Open it, see https://example.org[the site^], xref:other.adoc#top[another page] and <<setup,the setup>>.

[[setup]]
== Setup

.Before you begin
* one
** two with *bold*
. first

CPU:: the processor

[source,python]
----
# no heading
x = a * b * c
----

|===
|Name |Value

|gate |open
|key
|lost
|===

////
hidden
////
include::part.adoc[]
// a comment
====
An example.
====
"""


def test_asciidoc() -> None:
    parsed = read(ASCIIDOC, "text/asciidoc")
    assert parsed.title == "Guide to the Gate"
    assert dict(parsed.fields) == {"author": "Ann Smith", "version": "2.1"}
    assert [link.target for link in parsed.links] == ["https://example.org", "other.adoc#top"]
    found = sections(parsed)
    assert found[("Guide to the Gate",)] == "Open it, see the site, another page and the setup."
    assert found[("Guide to the Gate", "Setup")] == (
        "Before you begin\n\n- one\n  - two with bold\n\n1. first\n\nCPU: the processor\n\n"
        "# no heading\nx = a * b * c\n\nName — Value\n\ngate — open\n\nkey — lost\n\nAn example."
    )
    assert parsed.notes == ("The file 'part.adoc', which it includes, was not read: load it too.",)


ORG = """#+TITLE: Harbour notes
#+AUTHOR: Ann
Intro /slanted/ and *bold* =code= [[https://example.org][site]] [[file:other.org::*H][other]].
* TODO [#A] First :tag:
  SCHEDULED: <2026-01-01>
  :PROPERTIES:
  :ID: 1
  :END:
** Second
- item
| a | b |
|---+---|
| c | d |
#+BEGIN_SRC python
* no heading
#+END_SRC
#+BEGIN_COMMENT
hidden
#+END_COMMENT
# a comment
The path a/b/c and 3/4 stay.
"""


def test_org() -> None:
    parsed = read(ORG, "text/org")
    assert (parsed.title, dict(parsed.fields)["author"]) == ("Harbour notes", "Ann")
    assert [link.target for link in parsed.links] == ["https://example.org", "other.org"]
    assert sections(parsed) == {
        ("Harbour notes",): "Intro slanted and bold code site other.",
        (
            "Harbour notes",
            "First",
            "Second",
        ): "- item\n\na — b\n\nc — d\n\n* no heading\n\nThe path a/b/c and 3/4 stay.",
    }


LATEX = r"""\documentclass{article} \usepackage{tides} \title{On \emph{Tides}} \author{Ann \and Bob}
\begin{document}\maketitle
\begin{abstract}We study tides.\end{abstract}
\section{Times \& heights}\label{s} Caf\'e $\alpha = 2$, 50\% \cite{x}. % a comment
\subsection[short]{A {\bf bold} one}
\begin{lstlisting}[language=C]
y = {2}; // 5 % of it
\end{lstlisting}
See \href{https://example.org/a}{the site}, \unknown{kept}. \input{chapter2}
\end{document}
"""


def test_latex() -> None:
    parsed = read(LATEX, "text/x-tex")
    assert (parsed.title, dict(parsed.fields)["author"]) == ("On Tides", "Ann Bob")
    found = sections(parsed)
    assert "We study tides." in found[()]
    assert found[("Times & heights",)] == "Caf\xe9 α = 2, 50% ."
    assert found[("Times & heights", "A bold one")].startswith("y = {2}; // 5 % of it\n\nSee the site")
    assert "kept" in parsed.text
    assert [link.target for link in parsed.links] == ["https://example.org/a"]
    assert parsed.notes == ("The file 'chapter2', which it includes, was not read: load it too.",)


def test_latex_that_cannot_be_read_stays_as_it_is_written() -> None:
    parsed = read("\\section{One} words " + "{" * 3_000, "text/x-tex")
    assert "words" in parsed.text
    assert "stays as it is written" in parsed.notes[0]
