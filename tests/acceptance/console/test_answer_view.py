"""An answer in the browser: sentences above the hits, each with a number that opens its document there; or why none."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.console.conftest import SMALL, WIDE, OpenPage, hits, load, overflow, serious_faults
from tests.support.processes.installation import Installation

ASKED = "How often is the Semmel lock of the old canal painted?"
SENTENCE = "The Semmel lock of the old canal is painted every nine years."
NONSENSE = "Why did zqxv the plover marry a quasar?"


@pytest.fixture(scope="module")
def canal(console: Installation) -> None:
    """A document of many passages, the sentence in one of the last."""
    parts = [f"## Reach {n}\n\n" + f"Reach 🛶 {n} holds water for the mills below it. " * 40 for n in range(1, 9)]
    parts[6] = parts[6].replace("below it. ", f"below it. {SENTENCE} ", 1)
    content = "# Canal\n\n" + "\n\n".join(parts)
    load(
        console, [{"id": "canal.md", "content": content}, {"id": "quay.md", "content": "A quay of the canal."}], "canal"
    )


def ask(page: Page, question: str) -> None:
    page.get_by_role("searchbox", name="Question").fill(question)
    page.keyboard.press("Enter")


@pytest.mark.usefixtures("canal")
@pytest.mark.parametrize(("size", "theme"), [(SMALL, "light"), (WIDE, "dark")], ids=["narrow", "wide"])
def test_an_answer_opens_its_document_at_the_sentence(open_page: OpenPage, size: dict[str, int], theme: str) -> None:
    page = open_page("search?collection=canal", viewport=size, color_scheme=theme, bypass_csp=True)
    ask(page, ASKED)
    answer = page.get_by_role("region", name="Answer")
    expect(answer.locator("[aria-live=polite]")).to_contain_text(SENTENCE)
    expect(answer).to_contain_text("Sentences of documents, word for word")
    expect(answer.get_by_role("list", name="Sources of the answer")).to_contain_text(re.compile(r"Canal\s+Reach 7"))
    hits(page)
    assert serious_faults(page) == []
    assert overflow(page) <= 0
    number = answer.locator("p", has_text=SENTENCE).get_by_role("link", name="this sentence in Canal")
    expect(number).to_contain_text(re.compile(r"^\[\d\]"))
    number.focus()
    page.keyboard.press("Enter")
    sentence = page.locator("section.wanted mark")
    expect(sentence).to_have_text(SENTENCE)
    expect(sentence).to_be_in_viewport()
    expect(sentence).to_be_focused()
    page.go_back()
    expect(answer).to_contain_text(SENTENCE)


def test_a_question_that_nothing_answers_shows_the_reason(open_page: OpenPage) -> None:
    page = open_page("search?collection=rivers")
    ask(page, NONSENSE)
    reason = page.get_by_role("region", name="Answer").locator("[aria-live=polite]")
    expect(reason).to_contain_text("Nothing that was found is likely to answer it")
    expect(reason).to_contain_text("“zqxv”")
    expect(reason.get_by_role("link")).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.usefixtures("canal")
def test_an_answer_is_of_the_first_page_and_can_be_left_out(open_page: OpenPage) -> None:
    page = open_page("search?collection=canal&k=1")
    ask(page, ASKED)
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text(SENTENCE)
    hits(page)
    with page.expect_request("**/v1/search") as further:
        page.get_by_role("button", name="More hits").click()
    assert further.value.post_data_json["answer"] is False
    expect(page.locator("article")).to_have_count(2)
    expect(answer).to_contain_text(SENTENCE)
    page.get_by_role("button", name="Options").click()
    switch = page.get_by_role("switch", name="Answer")
    expect(switch).to_be_checked()
    switch.uncheck()
    expect(page).to_have_url(re.compile("answer=false"))
    expect(answer).to_have_count(0)
    switch.check()
    expect(answer).to_contain_text(SENTENCE)
    assert "answer=" not in page.url
    ask(page, "old canal")
    expect(page).to_have_url(re.compile(r"q=old\+canal"))
    expect(switch).not_to_be_checked()
    expect(answer).to_have_count(0)
