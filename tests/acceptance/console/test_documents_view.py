"""Documents in the browser: dropped, followed until searchable, opened, deleted, and brought back."""

from itertools import pairwise
from urllib.parse import quote_plus

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.console.conftest import (
    SMALL,
    WIDE,
    Complaints,
    OpenPage,
    agree,
    hits,
    load,
    overflow,
    serious_faults,
)
from tests.support.processes.installation import Installation

DROP = """([files]) => {
  const transfer = new DataTransfer();
  for (const [name, text] of files) transfer.items.add(new File([text], name));
  const zone = document.querySelector(".drop");
  zone.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""
HOSTILE = {
    "markup": '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>',
    "entity": "&lt;b&gt; & {@html 'x'} ${1} {{1}}",
    "right-to-left": "\u202eمرحبا بالعالم \u2067 evil.exe",
    "cjk": "河流" * 1000,
    "one long word": "w" * 2000,
    "breaks": "line\u2028\u2029\u0301\u0301\u0301 🛶🛶🛶\ufeff",
}  # fmt: skip


def drop(page: Page, *files: tuple[str, str]) -> None:
    page.locator(".drop").wait_for()
    page.evaluate(DROP, [[list(file) for file in files]])


def search(page: Page, q: str, collection: str) -> list[str]:
    page.evaluate(
        "([q, collection]) => location.hash = '#/search?' + new URLSearchParams({q, collection})", [q, collection]
    )
    return hits(page)


def test_a_file_that_is_dropped_becomes_searchable(open_page: OpenPage, complaints: Complaints) -> None:
    complaints.expected.append("status of 415")
    page = open_page("documents")
    page.get_by_label("into the collection").fill("dropped")
    drop(page, ("weir.md", "# The weir\n\nThe weir of Lyde holds the river back."), ("weir.bin", "\0\1"))
    added = page.get_by_role("list", name="Added")
    expect(added.get_by_role("listitem").filter(has_text="weir.md")).to_contain_text("searchable, and in the graph")
    refused = added.get_by_role("listitem").filter(has_text="weir.bin")
    expect(refused).to_contain_text("refused")
    expect(refused).to_contain_text("application/octet-stream")
    assert search(page, "weir of Lyde", "dropped") == ["The weir"]
    page.locator("article").get_by_role("link", name="The weir").click()
    expect(page.get_by_role("heading", name="The weir", level=1)).to_be_visible()
    expect(page.get_by_text("searchable, in the graph")).to_be_visible()
    expect(page.get_by_text("The weir of Lyde holds the river back.").first).to_be_visible()


def test_documents_view_finds_by_words_and_opens_the_document(open_page: OpenPage) -> None:
    page = open_page("documents?collection=rivers")
    page.get_by_label("Search the texts of documents").fill("a canal to the sea")
    page.get_by_role("button", name="Find", exact=True).click()
    found = hits(page)
    assert found[0] == "Quill"
    assert len(found) == len(set(found))
    page.get_by_role("link", name="Quill").first.click()
    expect(page.get_by_title("sent by its producer").filter(has_text="South")).to_be_visible()


def test_a_text_that_is_pasted_is_a_document(open_page: OpenPage) -> None:
    page = open_page("documents?collection=pasted")
    page.get_by_role("button", name="Paste a text").click()
    page.get_by_label("Title").fill("A note")
    page.get_by_label("Text", exact=True).fill("The ferry of Marrow goes at noon.")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("list", name="Added")).to_contain_text("searchable, and in the graph")
    assert search(page, "ferry of Marrow", "pasted") == ["A note"]


def test_a_delete_takes_a_hit_away_and_undo_brings_the_file_back(open_page: OpenPage) -> None:
    page = open_page("documents?collection=undone")
    drop(page, ("lock.md", "# The lock\n\nA *lock* lifts boats."))
    expect(page.get_by_role("list", name="Added")).to_contain_text("searchable, and in the graph")
    page.get_by_role("button", name="Delete The lock").click()
    agree(page, "Delete it")
    deleted = page.get_by_role("status", name="Deleted")
    expect(deleted).to_contain_text("Deleted The lock.")
    expect(deleted).not_to_contain_text("do not come back")
    added = page.get_by_role("list", name="Added").get_by_role("listitem")
    expect(added).to_contain_text(["deleted"])
    assert search(page, "a lock lifts boats", "undone") == []
    page.go_back()
    deleted.get_by_role("button", name="Undo").click()
    expect(deleted).to_contain_text("The lock is back.")
    expect(added).to_contain_text(["searchable, and in the graph"])
    assert search(page, "a lock lifts boats", "undone") == ["The lock"]


def test_undo_of_a_replaced_file_brings_back_the_newer_text(open_page: OpenPage, console: Installation) -> None:
    page = open_page("documents?collection=replaced")
    drop(page, ("gate.md", "# The gate\n\nThe gate is open."))
    expect(page.get_by_role("list", name="Added")).to_contain_text("searchable, and in the graph")
    load(console, [{"id": "gate.md", "content": "# The new gate\n\nThe gate is shut."}], "replaced")
    page.get_by_role("button", name="Delete The gate").click()  # as it was when the list was read
    agree(page, "Delete it")
    deleted = page.get_by_role("status", name="Deleted")
    expect(deleted).to_contain_text("do not come back")
    deleted.get_by_role("button", name="Undo").click()
    expect(deleted).to_contain_text("The gate is back, as a plain text.")
    assert search(page, "gate", "replaced") == ["The new gate"]


def test_document_not_restored_exactly_is_reported(open_page: OpenPage, console: Installation) -> None:
    load(console, [{"id": "a/b.md", "content": "# Bridge\n\nThe *bridge* is old.", "metadata": {"year": 1931}}], "said")
    page = open_page("documents?collection=said")
    page.get_by_role("button", name="Delete Bridge").click()
    agree(page, "Delete it")
    deleted = page.get_by_role("status", name="Deleted")
    expect(deleted).to_contain_text("do not come back")
    deleted.get_by_role("button", name="Undo").click()
    expect(deleted).to_contain_text("Bridge is back, as a plain text.")
    page.get_by_role("link", name="Bridge").first.click()
    expect(page.get_by_text("The bridge is old.").first).to_be_visible()
    expect(page.get_by_text("1931")).to_be_visible()
    expect(page.get_by_text("text/plain")).to_be_visible()


def test_shared_text_is_shown_once_and_sentences_are_marked(open_page: OpenPage, console: Installation) -> None:
    sentences = [f"Lock number {at} of the canal holds water for mill {at * 7}." for at in range(150)]
    load(console, [{"id": "locks.md", "content": " ".join(sentences)}], "locks")
    passages = httpx.get(f"{console.url}/v1/documents/locks.md", params={"collection": "locks"}).json()["passages"]
    pairs = list(pairwise(passages))
    assert any(after["start"] < before["end"] for before, after in pairs)
    page = open_page("documents?id=locks.md&in=locks")
    shown = page.locator(".text section p")
    expect(shown).not_to_have_count(0)
    text = " ".join(" ".join(shown.all_inner_texts()).split())
    assert [each for each in sentences if text.count(each) != 1] == []
    before, after = next(pair for pair in pairs if pair[1]["start"] < pair[0]["end"])
    shared = next(each for each in sentences if each in before["text"] and each in after["text"])
    start = after["start"] + after["text"].index(shared)
    for address in (
        f"id=locks.md&in=locks&passage={after['id']}&start={start}&end={start + len(shared)}",
        f"id=locks.md&in=locks&quote={quote_plus(shared)}",
    ):
        page = open_page(f"documents?{address}")
        expect(page.locator("section.wanted mark")).to_have_text(shared)
        expect(page.locator("section.wanted mark")).to_be_in_viewport()
        expect(page.locator(".text mark")).to_have_count(1)


def test_hostile_titles_are_text_and_keep_to_their_place(open_page: OpenPage, console: Installation) -> None:
    load(
        console,
        [{"id": name, "title": title, "content": f"An odd river, {name}."} for name, title in HOSTILE.items()],
        "odd",
    )
    page = open_page("documents?collection=odd", viewport=SMALL)
    expect(page.locator("tbody tr")).to_have_count(len(HOSTILE))
    assert overflow(page) <= 0
    shown = search(page, "odd river", "odd")
    assert HOSTILE["markup"] in shown
    assert len(shown) == len(HOSTILE)
    assert overflow(page) <= 0
    tallest = max(box["height"] for each in page.locator("article h2").all() if (box := each.bounding_box()))
    assert tallest < 100
    for name in HOSTILE:
        page.evaluate("id => location.hash = '#/documents?' + new URLSearchParams({id, in: 'odd'})", name)
        expect(page.get_by_role("definition").filter(has_text=name).first).to_be_visible()
        assert overflow(page) <= 0, name
    assert page.evaluate("window.hacked") is None


@pytest.mark.parametrize(("size", "theme"), [(SMALL, "dark"), (WIDE, "light")], ids=["narrow", "wide"])
def test_documents_view_is_accessible_and_fits_the_page(open_page: OpenPage, size: dict[str, int], theme: str) -> None:
    page = open_page("documents?collection=rivers", viewport=size, color_scheme=theme, bypass_csp=True)
    page.get_by_role("button", name="Paste a text").click()
    expect(page.locator("tbody tr")).to_have_count(4)
    assert serious_faults(page) == []
    assert overflow(page) <= 0
    page.get_by_role("link", name="Issen").click()
    expect(page.get_by_role("heading", name="Issen", level=1)).to_be_visible()
    assert serious_faults(page) == []
    assert overflow(page) <= 0
