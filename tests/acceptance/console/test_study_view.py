"""Quizzes and cards in the browser: made of documents, answered, each answer a link to the sentence that says so."""

import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.acceptance.console.conftest import SMALL, WIDE, Complaints, OpenPage, agree, load, overflow, serious_faults
from tests.support.processes.installation import Installation

CAPITALS = {
    "Lisbon": "Lisbon is the capital of Portugal and lies on the river Tagus.",
    "Madrid": "Madrid is the capital of Spain and has the largest museum of the country.",
    "Vienna": "Vienna is the capital of Austria and was the home of Sigmund Freud.",
    "Athens": "Athens is the capital of Greece and was the home of Socrates.",
    "Oslo": "Oslo is the capital of Norway and stands at the end of a long fjord.",
}


@pytest.fixture(scope="module")
def capitals(console: Installation) -> None:
    load(
        console, [{"id": f"{name}.md", "content": f"# {name}\n\n{text}"} for name, text in CAPITALS.items()], "capitals"
    )
    positions = [
        httpx.get(f"{console.url}/v1/documents/{name}.md", params={"collection": "capitals"}).json()["position"]
        for name in CAPITALS
    ]
    read = {"after": ",".join(positions), "wait_seconds": 60, "limit": 1}
    assert httpx.get(f"{console.url}/v1/edges", params=read, timeout=70).status_code == 200  # the graph has them


@pytest.mark.usefixtures("capitals")
@pytest.mark.parametrize(("size", "theme"), [(SMALL, "dark"), (WIDE, "light")], ids=["narrow", "wide"])
def test_a_quiz_is_made_answered_and_explained(
    open_page: OpenPage, console: Installation, size: dict[str, int], theme: str
) -> None:
    page = open_page("study?collection=capitals", viewport=size, color_scheme=theme, bypass_csp=True)
    page.get_by_role("button", name="Make a quiz").click()
    expect(page.get_by_role("heading", name="Quiz of capitals")).to_be_visible()
    questions = httpx.get(f"{console.url}/v1/quizzes/{page.url.rpartition('quiz=')[2]}").json()["questions"]
    assert len(questions) >= 2
    expect(page.get_by_role("button", name="Check")).to_be_disabled()
    assert serious_faults(page) == []
    for number, each in enumerate(questions):
        wrong = next(option for option in each["options"] if option != each["answer"])
        asked = page.get_by_role("group", name=f"{each['question']}. {each['text']}")
        asked.get_by_label(each["answer"] if number else wrong, exact=True).check()
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("status", name="Score")).to_have_text(f"{len(questions) - 1} of {len(questions)} right")
    first = page.get_by_role("group").first
    expect(first).to_contain_text(f"Wrong. It is {questions[0]['answer']}.")
    assert serious_faults(page) == []
    assert overflow(page) <= 0
    first.get_by_role("link").click()
    sentence = page.locator("section.wanted mark")
    expect(sentence).to_have_text(questions[0]["explanation"]["sentence"])
    expect(sentence).to_be_in_viewport()

    page.goto(f"{console.url}/#/study")
    made = page.get_by_role("listitem").filter(has_text="right last time").first
    expect(made).to_contain_text("Quiz of capitals")
    made.get_by_role("button", name="Delete").click()
    agree(page, "Delete")
    expect(page.get_by_role("listitem").filter(has_text="right last time")).to_have_count(0)


@pytest.mark.usefixtures("capitals")
def test_cards_of_a_document_are_turned_by_keys(open_page: OpenPage) -> None:
    page = open_page("documents?id=Lisbon.md&in=capitals")
    page.get_by_role("main").get_by_role("link", name="Study").click()
    page.get_by_role("button", name="Make cards").click()
    expect(page.get_by_role("heading", name="Cards of Lisbon.md")).to_be_visible()
    card = page.get_by_role("article")
    said = page.get_by_role("status", name="Progress")
    expect(said).to_contain_text(re.compile(r"Card 1 of \d"))
    count = int(said.inner_text().rpartition(" ")[2])
    for number in range(1, count + 1):
        expect(said).to_have_text(f"Card {number} of {count}")
        page.keyboard.press("y")  # nothing before it is turned
        expect(card.get_by_role("link")).to_have_count(0)
        page.keyboard.press("Space")
        expect(card.get_by_role("link", name="Lisbon")).to_be_visible()
        page.keyboard.press("y" if number == 1 else "n")
    expect(said).to_have_text(f"1 of {count} known.")
    page.get_by_role("button", name="Once more").click()
    expect(said).to_have_text(f"Card 1 of {count}")


def test_what_makes_no_quiz_says_what_would(open_page: OpenPage, complaints: Complaints) -> None:
    complaints.expected.append("422|404")
    page = open_page("study?collection=rivers&document=rivers/quill.md")
    page.get_by_role("button", name="Make a quiz").click()
    expect(page.get_by_role("alert")).to_contain_text("Choose a larger document")
    page.goto(page.url.partition("#/")[0] + "#/study?quiz=none")
    expect(page.get_by_role("alert")).to_be_visible()
