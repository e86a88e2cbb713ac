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


@pytest.mark.usefixtures("capitals")
@pytest.mark.parametrize(("size", "theme"), [(SMALL, "dark"), (WIDE, "light")], ids=["narrow", "wide"])
def test_a_concept_map_is_drawn_and_its_text_copied(
    open_page: OpenPage, console: Installation, size: dict[str, int], theme: str
) -> None:
    page = open_page("study?collection=capitals", viewport=size, color_scheme=theme, bypass_csp=True)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Draw a concept map").click()
    expect(page.get_by_role("heading", name="Concept map of capitals")).to_be_visible()
    expect(page.locator(".stage canvas")).not_to_have_count(0)
    made = httpx.get(f"{console.url}/v1/concept-maps/{page.url.rpartition('map=')[2]}").json()
    relations = page.get_by_role("region", name="What is drawn").get_by_role("listitem")
    expect(relations).to_have_count(len(made["relations"]))
    page.locator("summary", has_text="Mermaid text").click()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("status").filter(has_text="Copied.")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == made["mermaid"]
    assert serious_faults(page) == []
    assert overflow(page) <= 0
    first = made["relations"][0]
    relations.first.get_by_role("button", name=first["subject"]["label"], exact=True).click()
    expect(page.get_by_role("region", name=f"Of {first['subject']['label']}")).to_be_visible()
    page.get_by_role("button", name="All of it").click()
    relations.first.get_by_role("link").click()
    expect(page.locator("section.wanted mark")).to_have_text(first["evidence"][0]["sentence"])


@pytest.mark.parametrize(("size", "theme"), [(SMALL, "dark"), (WIDE, "light")], ids=["narrow", "wide"])
def test_a_learning_path_leads_from_step_to_step(
    open_page: OpenPage, console: Installation, size: dict[str, int], theme: str
) -> None:
    collection = f"trades-{theme}"
    texts = ("Baking requires Dough.", "Dough requires Yeast.", "Yeast is a fungus that makes bread rise.")
    load(
        console, [{"id": f"{at}.md", "content": f"# Trade {at}\n\n{text}"} for at, text in enumerate(texts)], collection
    )
    for source, target in (("Baking", "Dough"), ("Dough", "Yeast")):
        for label in (source, target):
            node = {"id": label, "label": label, "collection": collection}
            httpx.put(
                f"{console.url}/v1/nodes/{label}", params={"collection": collection}, json={"label": node["label"]}
            )
        edge = {"source": source, "target": target, "predicate": "requires", "collection": collection}
        token = httpx.post(f"{console.url}/v1/edges", json=edge).json()["token"]
        httpx.get(f"{console.url}/v1/edges", params={"after": token, "limit": 1, "wait_seconds": 60}, timeout=70)
    page = open_page(f"study?collection={collection}", viewport=size, color_scheme=theme, bypass_csp=True)
    page.get_by_role("button", name="Find a learning path").click()
    steps = page.get_by_role("list", name="Steps").locator("> li")
    expect(steps).not_to_have_count(0)
    names = [each.split("\n")[0] for each in steps.locator("h2").all_inner_texts()]
    assert [name.split()[0].lower() for name in names][:2] == ["yeast", "dough"]  # in either spelling of the texts
    expect(steps.nth(1)).to_contain_text("requires")
    assert serious_faults(page) == []
    assert overflow(page) <= 0


@pytest.mark.usefixtures("capitals")
def test_what_a_quiz_leaves_open_is_asked_about_once(open_page: OpenPage) -> None:
    page = open_page("study?collection=capitals")
    page.get_by_role("button", name="Make a quiz").click()
    asked = page.get_by_role("group")
    expect(asked).not_to_have_count(0)
    count = asked.count()
    asked.first.get_by_role("radio").first.check()
    page.get_by_role("button", name=f"Check 1 of {count}").click()
    expect(page.get_by_role("alertdialog")).to_contain_text(f"{count - 1} question")
    page.get_by_role("button", name="Go on answering").click()
    expect(asked.nth(1).get_by_role("radio").first).to_be_focused()
    page.get_by_role("button", name=f"Check 1 of {count}").click()
    expect(page.get_by_role("status", name="Score")).to_contain_text(f"{count - 1} left open")


@pytest.mark.usefixtures("capitals")
def test_of_several_collections_one_has_to_be_chosen(open_page: OpenPage) -> None:
    page = open_page("study")
    expect(page.get_by_role("combobox")).to_have_value("")
    expect(page.get_by_role("button", name="Make a quiz")).to_be_disabled()
    page.get_by_role("combobox").select_option("capitals")
    expect(page.get_by_role("button", name="Make a quiz")).to_be_enabled()


def test_the_only_collection_is_chosen_beside_saved_notes(open_page: OpenPage) -> None:
    page = open_page("documents")
    one = {"name": "rivers", "documents": 4, "saved_notes": 0}
    listed = {"collections": [{"name": "notes", "documents": 2, "saved_notes": 2}, one], "notes": []}
    page.route("**/v1/collections", lambda route: route.fulfill(json=listed))
    page.get_by_role("link", name="Study", exact=True).click()
    expect(page.get_by_role("combobox")).to_have_value("rivers")
    expect(page.get_by_role("button", name="Make a quiz")).to_be_enabled()


def test_what_makes_no_quiz_says_what_would(open_page: OpenPage, complaints: Complaints) -> None:
    complaints.expected.append("422|404")
    page = open_page("study?collection=rivers&document=rivers/quill.md")
    page.get_by_role("button", name="Make a quiz").click()
    expect(page.get_by_role("alert")).to_contain_text("Choose a larger document")
    page.goto(page.url.partition("#/")[0] + "#/study?quiz=none")
    expect(page.get_by_role("alert")).to_be_visible()
