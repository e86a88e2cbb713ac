"""Made questions in the browser: judged by keys, corrected, and asked by an evaluation."""

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.console.conftest import SMALL, WIDE, Complaints, OpenPage, load, overflow, serious_faults
from tests.support.processes.installation import Installation

TOWNS = {
    "Lisbon": "Lisbon is the capital of Portugal and lies on the river Tagus.",
    "Vienna": "Vienna is the capital of Austria and was the home of Sigmund Freud.",
    "Athens": "Athens is the capital of Greece and was the home of Socrates.",
    "Oslo": "Oslo is the capital of Norway and stands at the end of a long fjord.",
}


@pytest.fixture(scope="module", params=["narrow", "wide"])
def towns(console: Installation, request: pytest.FixtureRequest) -> str:
    """A collection of its own for each size: what is judged is kept."""
    collection = f"towns-{request.param}"
    load(console, [{"id": f"{name}.md", "content": f"# {name}\n\n{text}"} for name, text in TOWNS.items()], collection)
    return collection


def counted(page: Page, **counts: int) -> None:
    for name, number in counts.items():
        tab = page.get_by_role("navigation", name="Questions").get_by_role("link", name=name.replace("_", " "))
        expect(tab).to_have_text(re.compile(rf"\b{number}\s*$"))


def test_questions_are_judged_by_keys_and_evaluated(open_page: OpenPage, towns: str) -> None:
    narrow = towns.endswith("narrow")
    size, theme = (SMALL, "dark") if narrow else (WIDE, "light")
    page = open_page("evaluation", viewport=size, color_scheme=theme, bypass_csp=True)
    page.get_by_role("link", name="Make questions").click()
    expect(page.get_by_role("heading", name="Ground truth")).to_be_visible()
    page.get_by_role("combobox").select_option(towns)
    page.get_by_role("button", name="Make 20 questions").click()
    expect(page.get_by_role("status").filter(has_text="made")).to_be_visible()
    cards = page.get_by_role("list", name="Questions").locator("> li")
    expect(cards).not_to_have_count(0)
    made = cards.count()
    assert made >= 3
    counted(page, To_judge=made, Confirmed=0, Rejected=0)
    assert serious_faults(page) == []
    assert overflow(page) <= 0

    page.keyboard.press("c")  # nothing is chosen yet
    page.keyboard.press("j")
    first, second, third = (cards.nth(at).get_attribute("aria-label") or "" for at in range(3))
    expect(cards.first).to_be_focused()
    page.keyboard.press("c")
    expect(page.get_by_role("listitem", name=second, exact=True)).to_be_focused()
    counted(page, To_judge=made - 1, Confirmed=1)
    page.keyboard.press("x")
    expect(page.get_by_role("listitem", name=third, exact=True)).to_be_focused()
    counted(page, To_judge=made - 2, Confirmed=1, Rejected=1)
    page.keyboard.press("u")
    counted(page, To_judge=made - 1, Confirmed=1, Rejected=0)

    chosen = page.get_by_role("listitem", name=second, exact=True)
    expect(chosen).to_be_focused()
    page.keyboard.press("e")
    form = page.get_by_role("form", name="Correction")
    question = form.get_by_role("textbox").first
    expect(question).to_be_focused()
    question.fill("Which town is meant, jxc?")  # letters are no keys here
    assert serious_faults(page) == []
    form.get_by_role("button", name="Save and confirm").click()
    expect(form).to_have_count(0)
    counted(page, To_judge=made - 2, Confirmed=2, Rejected=0)

    page.get_by_role("navigation", name="Questions").get_by_role("link", name="Confirmed").click()
    corrected = page.get_by_role("listitem", name="Which town is meant, jxc?")
    expect(corrected).to_contain_text("corrected")
    expect(page.get_by_role("listitem", name=first, exact=True)).to_be_visible()
    page.get_by_role("link", name="Evaluate with the 2 confirmed").click()
    lines = page.get_by_role("textbox", name="Questions")
    expect(lines).to_have_value(re.compile("jxc"))
    asked = [json.loads(line) for line in lines.input_value().splitlines()]
    assert {each["text"] for each in asked} == {first, "Which town is meant, jxc?"}
    page.get_by_role("button", name="Evaluate", exact=True).click()
    expect(page.get_by_role("heading", name=f"asked here, {towns}")).to_be_visible()

    page.go_back()
    page.go_back()
    page.get_by_role("listitem", name=first, exact=True).get_by_role("link", name="Open it there").click()
    sentence = page.locator("section.wanted mark")
    expect(sentence).to_be_in_viewport()
    assert sentence.inner_text() in TOWNS.values()


def test_a_wrong_document_is_named_and_the_correction_stays(
    open_page: OpenPage, towns: str, complaints: Complaints
) -> None:
    complaints.expected.append("422")
    page = open_page(f"ground-truth?collection={towns}")
    page.get_by_role("button", name=re.compile("Make 20")).click()
    cards = page.get_by_role("list", name="Questions").locator("> li")
    expect(cards).not_to_have_count(0)
    cards.first.get_by_role("button", name="Correct").click()
    form = page.get_by_role("form", name="Correction")
    form.get_by_role("textbox").last.fill("nowhere.md")
    form.get_by_role("button", name="Save and confirm").click()
    expect(page.get_by_role("alert")).to_contain_text("holds no 'nowhere.md'")
    expect(form.get_by_role("textbox").last).to_have_value("nowhere.md")
    form.get_by_role("textbox").last.press("Escape")
    expect(form).to_have_count(0)
    expect(cards.first).to_be_focused()
