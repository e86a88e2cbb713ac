"""The place to ask, in the browser: a conversation whose answers open at their sentences, kept and come back to."""

import json
import re

import httpx
import pytest
from playwright.sync_api import Locator, Page, Request, Route, expect

from tests.acceptance.console.conftest import (
    SMALL,
    WIDE,
    Complaints,
    OpenPage,
    agree,
    overflow,
    serious_faults,
)
from tests.support.processes.installation import Installation

ASKED = "Which river floods the meadows of Lyde in spring?"
SENTENCE = "In spring the Tavel floods the meadows of Lyde."
NONSENSE = "Why did zqxv the plover marry a quasar?"
MOST_SHIFTED = 0.01  # a tenth of what Web Vitals call good
SHIFTS = """async () => {
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const shift of list.getEntries()) if (!shift.hadRecentInput) window.shifted += shift.value;
  }).observe({ type: "layout-shift", buffered: false });
}"""


def ask(page: Page, question: str) -> Locator:
    """The turn of the question, once its answer is complete."""
    page.get_by_role("textbox", name="Question").fill(question)
    page.keyboard.press("Enter")
    return answered(page, question)


def answered(page: Page, question: str) -> Locator:
    turn = page.get_by_role("article", name=question).last
    expect(turn.locator(".answer")).to_have_attribute("aria-busy", "false")
    return turn


@pytest.mark.parametrize(("size", "theme"), [(SMALL, "dark"), (WIDE, "light")], ids=["narrow", "wide"])
def test_an_answer_opens_at_its_sentence_and_can_be_asked_on(
    open_page: OpenPage, size: dict[str, int], theme: str
) -> None:
    page = open_page("ask?collection=rivers", viewport=size, color_scheme=theme, bypass_csp=True)
    expect(page.get_by_role("textbox", name="Question")).to_be_focused()
    expect(page.get_by_role("list", name="To begin with").get_by_role("button")).not_to_have_count(0)
    assert serious_faults(page) == []
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/v1/answers", hold, times=1)
    page.get_by_role("textbox", name="Question").fill(ASKED)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"#/ask\?conversation="))
    expect(page.get_by_role("article").get_by_role("status")).to_contain_text("Searching")
    page.evaluate(SHIFTS)
    held.pop().continue_()
    turn = answered(page, ASKED)
    expect(turn.locator("[aria-live=polite]")).to_contain_text(SENTENCE)
    expect(turn.get_by_role("list", name="Ask on about")).to_be_visible()
    assert page.evaluate("window.shifted") < MOST_SHIFTED
    assert serious_faults(page) == []
    assert overflow(page) <= 0

    turn.locator("p", has_text=SENTENCE).get_by_role("link", name="this sentence in Tavel").click()
    sentence = page.locator("section.wanted mark")
    expect(sentence).to_have_text(SENTENCE)
    expect(sentence).to_be_in_viewport()
    page.go_back()

    on = answered(page, ASKED).get_by_role("list", name="Ask on about").get_by_role("button", name="Issen", exact=True)
    on.click()
    concept = answered(page, "What is Issen?")
    expect(concept).to_contain_text("The Issen is a slow river.")
    expect(concept.get_by_role("heading", name="What is Issen?")).to_be_in_viewport()
    follow_up = ask(page, "And what lifts its water?")
    expect(follow_up).to_contain_text(re.compile("Searched for: And what lifts its water.* Issen"))
    expect(follow_up).to_contain_text("A heron pump lifts its water")
    expect(page.get_by_role("article")).to_have_count(3)
    assert serious_faults(page) == []
    assert overflow(page) <= 0


def test_conversations_are_reopened_renamed_and_deleted(open_page: OpenPage, complaints: Complaints) -> None:
    page = open_page("ask?collection=rivers")
    ask(page, ASKED)
    expect(page).to_have_url(re.compile("conversation="))
    history = page.get_by_role("complementary", name="History")
    listed = history.locator("[aria-current=page]")
    expect(listed).to_have_text(ASKED)

    other = open_page(page.url.partition("#/")[2])
    turn = answered(other, ASKED)
    expect(turn).to_contain_text(SENTENCE)
    expect(turn.get_by_role("link", name="this sentence in Tavel").first).to_have_attribute(
        "href", re.compile("start=")
    )
    expect(other.locator(".composer")).to_contain_text("In rivers")

    history.get_by_role("button", name=f"Rename {ASKED}").first.click()
    title = history.get_by_role("textbox", name="Title of the conversation")
    expect(title).to_be_focused()
    title.fill("Floods <b>of spring</b>")
    page.keyboard.press("Enter")
    expect(listed).to_have_text("Floods <b>of spring</b>")

    history.get_by_role("button", name="Delete Floods").click()
    agree(page, "Delete")
    expect(listed).to_have_count(0)
    expect(page.get_by_role("heading", name="Ask your documents")).to_be_visible()

    complaints.expected.append("404")
    other.get_by_role("textbox", name="Question").fill("And in autumn?")
    other.keyboard.press("Enter")
    expect(other.get_by_role("alert")).to_contain_text("conversation")  # what another page deleted
    other.reload()
    expect(other.get_by_role("alert")).to_contain_text("conversation")
    expect(other.get_by_role("button", name="Ask", exact=True)).to_be_disabled()


def test_only_some_documents_are_asked(open_page: OpenPage) -> None:
    page = open_page("ask")
    page.get_by_role("button", name="Only some documents").click()
    page.get_by_role("searchbox", name="Find a document").fill("the canal made by people")
    page.get_by_role("list", name="Documents to choose from").get_by_role("button", name="Quill").click()
    expect(page.get_by_role("list", name="Chosen documents")).to_contain_text("rivers/quill.md")
    expect(page).to_have_url(re.compile(r"collection=rivers&document=rivers%2Fquill\.md"))
    ask(page, ASKED)
    expect(page.locator(".composer")).to_contain_text("In 1 document of rivers")
    expect(page.locator("article").get_by_text(SENTENCE)).to_have_count(0)

    page.goto(page.url.partition("#/")[0] + "#/documents?id=rivers/tavel.md&in=rivers")
    page.get_by_role("link", name="Ask about it").click()
    expect(page.get_by_role("list", name="Chosen documents")).to_contain_text("rivers/tavel.md")
    expect(ask(page, ASKED)).to_contain_text(SENTENCE)


def test_a_refusal_says_why_and_what_may_help(open_page: OpenPage) -> None:
    page = open_page("ask?collection=rivers")
    turn = ask(page, NONSENSE)
    expect(turn.locator("[aria-live=polite]")).to_contain_text("Nothing that was found is likely to answer it")
    expect(turn.locator("[aria-live=polite]")).to_contain_text("“zqxv”")
    may_help = turn.get_by_role("group", name="What may help")
    expect(may_help.get_by_role("link", name="Add documents")).to_be_visible()
    may_help.get_by_role("link", name="See the nearest texts").click()
    expect(page.get_by_role("searchbox", name="Question")).to_have_value(NONSENSE)
    page.go_back()
    with page.expect_request(lambda sent: sent.url.endswith("/v1/conversations") and sent.method == "POST") as made:
        answered(page, NONSENSE).get_by_role("button", name="Ask in all collections").click()
    assert made.value.post_data_json == {"collection": None, "documents": []}
    expect(answered(page, NONSENSE).get_by_role("button", name="Ask in all collections")).to_have_count(0)


def test_an_answer_above_the_hits_leads_to_a_conversation(open_page: OpenPage) -> None:
    page = open_page("search?collection=rivers&q=" + ASKED.replace(" ", "+"))
    page.get_by_role("region", name="Answer").get_by_role("link", name="Ask on").click()
    expect(answered(page, ASKED)).to_contain_text(SENTENCE)
    expect(page).to_have_url(re.compile(r"#/ask\?conversation="))
    page.go_back()
    expect(page.get_by_role("region", name="Answer")).to_contain_text(SENTENCE)


def test_a_question_is_answered_where_no_conversation_is_kept(open_page: OpenPage, complaints: Complaints) -> None:
    complaints.expected.append("503")
    page = open_page("ask?collection=rivers&document=rivers/tavel.md")
    problem = {"title": "No log", "detail": "Kafka is away."}

    def refuse(route: Route, request: Request) -> None:
        if request.method == "POST":
            route.fulfill(status=503, json=problem)
        else:
            route.continue_()

    page.route("**/v1/conversations*", refuse)
    expect(ask(page, ASKED)).to_contain_text(SENTENCE)
    expect(page.get_by_role("status").filter(has_text="is not kept")).to_contain_text("Kafka is away.")
    expect(ask(page, "What floods in spring?")).to_contain_text("Tavel")
    expect(page.get_by_role("article")).to_have_count(2)
    page.get_by_role("link", name="this sentence in Tavel").first.click()
    expect(page.locator("section.wanted mark")).to_have_count(1)
    page.go_back()
    expect(page.get_by_role("article")).to_have_count(2)  # as it was left


def test_an_answer_can_be_stopped_and_asked_again(open_page: OpenPage) -> None:
    page = open_page("ask?collection=rivers")
    page.route("**/v1/answers", lambda _: None)  # no answer ever comes
    box = page.get_by_role("textbox", name="Question")
    box.fill("Which river\nfloods?")
    page.keyboard.press("Enter")
    turn = page.get_by_role("article")
    expect(turn.get_by_role("status")).to_contain_text("Searching")
    box.fill("Something else?")
    page.keyboard.press("Enter")  # not while one is asked
    expect(box).to_have_value("Something else?")
    page.get_by_role("button", name="Stop").click()
    expect(turn).to_contain_text("Stopped.")
    page.unroute("**/v1/answers")
    turn.get_by_role("button", name="Ask it again").click()
    expect(turn.locator("[aria-live=polite]")).to_contain_text("floods")
    expect(page.get_by_role("article")).to_have_count(1)


@pytest.mark.parametrize("method", ["click", "keyboard"])
def test_a_suggestion_is_asked(open_page: OpenPage, method: str) -> None:
    page = open_page("ask?collection=rivers")
    offers = page.get_by_role("list", name="To begin with").get_by_role("button")
    offered = offers.filter(has_text="Issen")  # which a sentence says what it is
    question = offered.inner_text()
    expect(offers.filter(has_text="Lyde")).to_have_count(0)
    if method == "click":
        offered.click()
    else:
        offered.focus()
        page.keyboard.press("Enter")
    answered(page, question)


@pytest.mark.parametrize(("size", "theme"), [(SMALL, "dark"), (WIDE, "light")], ids=["narrow", "wide"])
def test_a_research_shows_its_steps_and_its_note_is_saved(
    open_page: OpenPage, console: Installation, size: dict[str, int], theme: str
) -> None:
    page = open_page("ask?collection=rivers", viewport=size, color_scheme=theme, bypass_csp=True)
    page.get_by_text("Research", exact=True).click()
    turn = ask(page, "Compare the Tavel and the Issen")
    expect(turn.locator("[aria-live=polite]").first).to_contain_text("The Issen is a slow river.")
    turn.get_by_text(re.compile(r"\d search(es)? in \d round")).click()
    steps = turn.get_by_role("list", name="Steps")
    expect(steps).to_contain_text("The question asks for a comparison.")
    expect(steps).to_contain_text("Round 1")
    expect(steps).to_contain_text(re.compile(r"\d new sentence"))
    assert serious_faults(page) == []
    assert overflow(page) <= 0
    turn.get_by_role("button", name="Save the note").click()
    saved = turn.get_by_role("link", name="a document of research")
    expect(saved).to_be_visible()
    source = turn.locator("p", has_text="The Issen is a slow river.").get_by_role("link").first
    source.click()
    expect(page.locator("section.wanted mark")).to_have_text("The Issen is a slow river.")
    page.go_back()
    answered(page, "Compare the Tavel and the Issen").get_by_role("link", name="a document of research").click()
    expect(page.get_by_role("heading", name="Compare the Tavel and the Issen")).to_be_visible()
    note = page.url.rpartition("id=")[2].partition("&")[0]
    httpx.delete(f"{console.url}/v1/documents/{note}", params={"collection": "research"}).raise_for_status()


def test_a_research_can_be_stopped_and_begun_again(open_page: OpenPage) -> None:
    page = open_page("ask?collection=rivers")
    page.get_by_text("Research", exact=True).click()
    page.route("**/v1/research", lambda _: None)  # no answer ever comes
    page.get_by_role("textbox", name="Question").fill(ASKED)
    page.keyboard.press("Enter")
    turn = page.get_by_role("article")
    expect(turn.get_by_role("status")).to_contain_text("Reading the question")
    page.get_by_role("button", name="Stop").click()
    expect(turn).to_contain_text("Stopped.")
    page.unroute("**/v1/research")
    turn.get_by_role("button", name="Research it again").click()
    expect(turn.locator("[aria-live=polite]").first).to_contain_text(SENTENCE)
    page.get_by_text("Answer", exact=True).click()  # the next question is a plain one again
    expect(ask(page, "What is the Issen?")).to_contain_text("The Issen is a slow river.")


def test_who_writes_the_answer_is_chosen_where_a_model_is_set(open_page: OpenPage, complaints: Complaints) -> None:
    page = open_page("study")
    sent: list[str] = []
    written = {
        "form": "model", "text": "It is slow. [1]", "dropped": 2, "refused": False, "citations": [
            {
                "number": 1, "text": "The Issen is a slow river.", "title": "Issen", "document_id": "rivers/issen.md",
                "collection": "rivers", "chunk_id": "c", "passage_id": "p", "hit": 1, "section": [],
                "start": 0, "end": 26,
            }
        ],
    }  # fmt: skip
    frames = [
        ("answer.citation", written["citations"][0]),  # type: ignore[index]
        ("answer.delta", {"index": 0, "text": "It is slow. [1]", "citations": [1]}),
        ("done", {"notes": ["A note."], "answer": written}),
    ]
    body = "".join(f"event: {name}\nid: r.{at}\ndata: {json.dumps(data)}\n\n" for at, (name, data) in enumerate(frames))

    def status(route: Route) -> None:
        route.fulfill(json=httpx.get(route.request.url).json() | {"language_model": "scribe"})

    def answer(route: Route, request: Request) -> None:
        sent.append(json.loads(request.post_data or "{}")["answer_form"])
        route.fulfill(headers={"content-type": "text/event-stream"}, body=body)

    page.route("**/v1/status", status)
    page.route("**/v1/answers", answer)
    page.get_by_role("link", name="Ask", exact=True).click()
    page.get_by_text("In its own words").click()
    turn = ask(page, "Is the Issen slow?")
    expect(turn).to_contain_text("Written by a language model, and checked against its sources")
    expect(turn).to_contain_text("2 sentences that no source supports were left out.")
    expect(turn).to_contain_text("A note.")
    page.get_by_text("Word for word", exact=True).click()
    ask(page, "Is it?")
    assert sent == ["model", "extract"]
