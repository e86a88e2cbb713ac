"""Valid documents of every format, and what chance makes of them."""

from collections.abc import Sequence
from io import BytesIO
from zipfile import ZipFile

from hypothesis import strategies as st

from tests.support.fixtures.office_files import archive, docx, pdf
from tests.unit.indexer.parsing.test_eight_formats import DOCUMENTS
from tests.unit.indexer.parsing.test_office import (
    EPUB,
    NAV,
    NAV_PAGE,
    NCX,
    NCX_PAGE,
    PPTX,
    XLSX,
    book,
    cells,
    presentation,
    shape,
    slide,
    workbook,
)

MOST_CHANGES = 8
MOST_BYTES = 100_000

_BLOCKS = [("h1", "Ports"), ("p", "Basel lies on the Rhine."), ("li", "one"), ("li", "two"), ("h2", "Zürich")]
_MARKDOWN = """---
title: Häfen
author: [A, B]
---
# A

> *quoted* **bold**

| a | b |
|---|---|
| 1 | `2` |

```py
x = 1
```

![alt](a.png) [link](b.md "t") <div>raw</div>

1. one
   - two
"""
_HTML = b"""<!doctype html><title>T</title><meta charset=utf-8><table><tr><th>a<td>b</table><pre>x
y</pre><nav>n</nav><figure><img alt=a><figcaption>c</figcaption></figure><a href='b.html'>b</a>
&amp;&#228;&nbsp;<script>1</script>"""
_RST = b""":Author: A

T
=

.. note:: n

.. |s| replace:: sub

|s| `l <b>`_ ``c`` *e*

.. code-block:: py

   x

==  ==
a   b
==  ==
1   2
==  ==

.. [1] foot
"""
_JSON = b'{"@graph":[{"name":"N","text":"<p>a</p>","n":1e9,"x":[null,true,"\\u00e4"]}],"body":"words","date":"2020"}'
_RSS = b"""<?xml version='1.0'?><rss><channel><title>T</title><item><title>i</title>
<description><![CDATA[<p>x</p>]]></description><!-- c --><link>http://a.b</link></item></channel></rss>"""
_CSV = 'Port;Größe;Notes\r\nBasel;3,5;"said ""no"";\nthen, left"\r\nZürich;;https://a.b/c\r\n'.encode()
_TSV = b'name\tsize\n"Elbow" pipe\t5"\nbend\t\t7\n'
_PLAIN = "From: a\nTo: b\n\nZürich  |  x\n- one\n- two\nhttps://a.b/c\n".encode()
_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
SAMPLES: dict[str, tuple[bytes, ...]] = {
    "text/markdown": (DOCUMENTS["rivers.md"], _MARKDOWN.encode()),
    "text/html": (DOCUMENTS["rivers.html"], _HTML),
    "text/plain": (DOCUMENTS["rivers.txt"], _PLAIN),
    "text/x-rst": (DOCUMENTS["rivers.rst"], _RST),
    "application/json": (DOCUMENTS["rivers.json"], _JSON),
    "application/xml": (DOCUMENTS["rivers.xml"], _RSS),
    "text/csv": (b"Port,River\nBasel,Rhine\nKoblenz,Mosel\n", _CSV),
    "text/tab-separated-values": (b"Port\tRiver\nBasel\tRhine\n", _TSV),
    "application/pdf": (DOCUMENTS["rivers.pdf"], pdf([_BLOCKS, _BLOCKS])),
    _DOCX: (DOCUMENTS["rivers.docx"], docx(_BLOCKS)),
    PPTX: (archive(presentation(slide(shape("Ports", "title"), shape("Basel\nZürich", "body")))),),
    XLSX: (archive(workbook(cells(1, "Port", "Size") + cells(2, "Basel", "<v>3.5</v>"))),),
    EPUB: (archive(book(NAV, NAV_PAGE)), archive(book(NCX, NCX_PAGE))),
    "text/mdx": (b"import A from 'a'\n\n# Rivers\n\n<A x={1}>The *Rhine*</A> {/* no */}\n",),
    "text/asciidoc": (
        b"= Rivers\nAnn\n:a: 1\n\n== Bed\n\n* one\n----\ncode\n----\n|===\n|a |b\n|===\nhttps://a.b[c]\n",
    ),
    "text/org": (
        b"#+TITLE: Rivers\n* TODO Bed :a:\n:P:\n:END:\n| a | b |\n#+BEGIN_SRC c\nx\n#+END_SRC\n[[a][b]] *c*\n",
    ),
    "text/x-tex": (
        b"\\title{R}\\begin{document}\\section{Bed} $a^2$ \\emph{x}\\begin{verbatim}y\\end{verbatim}\\end{document}",
    ),
    "text/vtt": (b"WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>The Rhine.</v>\n\n00:40.000 --> 00:41.000\nIt flows.\n",),
    "application/x-ipynb+json": (
        (
            b'{"cells": [{"cell_type": "markdown", "source": ["# Rivers"]}, {"cell_type": "code", "source": "x = 1", '
            b'"outputs": [{"text": ["1"]}]}], "metadata": {"kernelspec": {"language": "python"}}}'
        ),
    ),
    "message/rfc822": (
        (
            b"Subject: =?utf-8?q?Z=C3=BCrich?=\nFrom: A <a@b.c>\nMIME-Version: 1.0\n"
            b"Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/html; charset=latin-1\n\n<p>Rhine\n"
            b"--x\nContent-Disposition: attachment; filename=a.md\nContent-Transfer-Encoding: base64\n\nIyBB\n--x--\n"
        ),
    ),
    "application/mbox": (b"From a\nSubject: b\n\nThe Rhine.\n\nFrom c\nSubject: d\n\nThe Mosel.\n",),
    "text/x-python": (b'"""Doc."""\n\nclass A:\n    def f(self):\n        return "x"\n',),
}
_TOKENS = (
    b"<", b"</", b">", b"<!--", b"<![CDATA[", b"&", b"&#x110000;", b"{", b"}", b"[", b"]", b'"', b"\\", b"\\u",
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3", b"\n", b"\r", b"\t" * 40, b"---\n", b"```", b"|", b"*" * 300,
    b"_", b"`", b"> " * 90, b"- " * 90, b".. ", b"::", b"=" * 9, b"9" * 30, b"-1", b"1e999", b"null", b"<div>" * 300,
    b"[" * 300, b"(" * 300, b"endobj", b"stream", b"/Kids[1 0 R]", b"/Count 99999999", b"/Length -1", b"xref", b"w:p",
    b"xmlns", b"PK\x03\x04",
)  # fmt: skip


def mutated(media_type: str) -> st.SearchStrategy[bytes]:
    """Content that is said to be of this media type: samples changed here and there, and, one in five, any bytes."""
    samples = SAMPLES[media_type]
    changed = st.builds(_changed, st.sampled_from(samples), _changes(samples))
    if samples[0].startswith(b"PK"):
        parts = st.builds(_with_part_changed, st.sampled_from(samples), st.integers(0), _changes(samples))
        changed = parts | parts | changed
    return st.integers(0, 4).flatmap(lambda chance: changed if chance else st.binary(max_size=2_000))


def _changes(samples: Sequence[bytes]) -> st.SearchStrategy[list[tuple[str, float, float, bytes]]]:
    """(what is done, where and how far as shares of the length, what is put there)."""
    put = st.sampled_from(_TOKENS) | st.binary(min_size=1, max_size=20) | st.sampled_from(samples)
    share = st.floats(0, 1, exclude_max=True)
    kinds = st.sampled_from(("insert", "replace", "cut", "double", "end", "flip"))
    return st.lists(st.tuples(kinds, share, share, put), min_size=1, max_size=MOST_CHANGES)


def _changed(content: bytes, changes: Sequence[tuple[str, float, float, bytes]]) -> bytes:
    for kind, where, extent, put in changes:
        start = int(where * len(content))
        end = min(len(content), start + 1 + int(extent**4 * len(content)))
        head, middle, tail = content[:start], content[start:end], content[end:]
        match kind:
            case "insert":
                content = head + put + middle + tail
            case "replace":
                content = head + put + tail
            case "cut":
                content = head + tail
            case "double":
                content = head + middle * 2 + tail
            case "end":
                content = head + middle
            case _:
                content = head + bytes(byte ^ 1 << start % 8 for byte in middle[:1]) + middle[1:] + tail
    return content[:MOST_BYTES]


def _with_part_changed(content: bytes, number: int, changes: Sequence[tuple[str, float, float, bytes]]) -> bytes:
    """A Word document whose archive is sound and one of whose parts is not."""
    with ZipFile(BytesIO(content)) as opened:
        parts = {name: opened.read(name) for name in opened.namelist()}
    name = sorted(parts)[number % len(parts)]
    return archive({**parts, name: _changed(parts[name], changes)})
