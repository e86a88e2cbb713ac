"""`thalweg search`: every option of the route, hits as they come, wrong values with the nearest right one."""

import json
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from query_api.cli import app as base_commands
from query_api.cli import search
from query_api.client import ServerSentEvent
from schemas.errors import Exit
from schemas.filters import MAX_HITS
from schemas.search import SearchRequest
from tests.support.fakes.engine import make_hit

HIT = json.loads(make_hit(1).model_dump_json(by_alias=True))
META = {"snapshot": {"positions": "0:7", "generation": "g0001"}}
DONE = {"retrieval_id": "r_1", "hits": 1, "timings": {"total": 0.02}, "failed_channels": {}}


class StubClient:
    """A client that answers from a list."""

    def __init__(self, events: list[ServerSentEvent]) -> None:
        self.asked: dict[str, Any] = {}
        self._events = events

    def events(self, path: str, params: dict[str, Any]) -> list[ServerSentEvent]:
        self.asked = params
        return self._events

    def get(self, path: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return {"path": path, "params": params}

    def close(self) -> None:
        return


def run(
    monkeypatch: pytest.MonkeyPatch, *arguments: str, events: list[ServerSentEvent] | None = None
) -> tuple[Any, StubClient]:
    stub = StubClient(events or [])
    monkeypatch.setattr(base_commands, "service_client", lambda url, data_dir: stub)
    return CliRunner().invoke(search.app, ["search", *arguments]), stub


def test_a_question_is_taken_apart_when_asked_for_and_hits_tell_what_for(monkeypatch: pytest.MonkeyPatch) -> None:
    hit = HIT | {"parts": {"the Elbe": 1, "the Oder": 7}}
    events = [ServerSentEvent("meta", META), ServerSentEvent("hit", hit), ServerSentEvent("done", DONE)]
    result, stub = run(monkeypatch, "compare the Elbe and the Oder", "--decompose", events=events)
    assert result.exit_code == Exit.OK
    assert stub.asked["decompose"] is True
    assert "for “the Elbe” at 1, “the Oder” at 7" in result.output


@pytest.mark.parametrize(
    ("options", "asked"), [([], None), (["--reranker"], True), (["--no-reranker"], False)], ids=str
)
def test_a_re_ranker_is_asked_for_or_not_or_as_the_service_has_it(
    monkeypatch: pytest.MonkeyPatch, options: list[str], asked: bool | None
) -> None:
    done = DONE | {"failed_channels": {"rerank": "It is away.", "graph": "It is late."}}
    events = [ServerSentEvent("meta", META), ServerSentEvent("done", done)]
    result, stub = run(monkeypatch, "river", *options, events=events)
    assert stub.asked.get("reranker") is asked
    assert "Without the re-ranker: It is away." in result.output
    assert "Without the graph channel: It is late." in result.output


def test_search_prints_hits_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [
        ServerSentEvent("meta", META),
        ServerSentEvent("stage", {}),
        ServerSentEvent("hit", HIT),
        ServerSentEvent("done", DONE),
    ]
    result, stub = run(monkeypatch, "the river", "-k", "3", "--after", "0:7", events=events)
    assert result.exit_code == Exit.OK
    assert "Note 1" in result.output
    assert "river ─mentions→ Note 1" in result.output
    assert stub.asked == {
        "q": "the river", "k": 3, "group": "document", "duplicates": "exact", "after": "0:7"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "group", "duplicates"),
    [
        ([], "document", "exact"),
        (["--duplicates", "keep"], "document", "keep"),
        (["--group", "passage"], "passage", None),
        (["--max-per-document", "3"], "passage", None),
        (["--max-per-document", "1"], "document", "exact"),
        (["--max-per-document", "3", "--duplicates", "exact"], "passage", "exact"),
    ],
    ids=str,
)
def test_search_asks_for_one_hit_a_document_unless_told(
    monkeypatch: pytest.MonkeyPatch, options: list[str], group: str, duplicates: str | None
) -> None:
    result, _ = run(monkeypatch, "river", *options, "--json")
    asked = json.loads(result.stdout)["params"]
    assert (asked["group"], asked.get("duplicates")) == (group, duplicates)
    SearchRequest.model_validate(asked)


def test_search_prints_further_passages_and_copies_under_a_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    passages = [
        {"section": ["Note 1", "Locks"], "page": 4, "text": "A lock lifts a barge.", "highlights": [], "answer": None},
        {"section": ["Note 1"], "page": None, "text": "A weir.", "highlights": [], "answer": None},
    ]
    others = [{"collection": "wiki", "document_id": f"copy{at}"} for at in range(5)]
    hits = [
        HIT | {"passages": passages, "copies": 299, "duplicates": others},
        HIT | {"copies": 1, "duplicates": others[:1]},
        HIT | {"copies": 0, "duplicates": others[:1]},
    ]
    events = [
        ServerSentEvent("meta", META),
        *(ServerSentEvent("hit", hit) for hit in hits),
        ServerSentEvent("done", DONE),
    ]
    lines = [line.strip() for line in run(monkeypatch, "river", events=events)[0].output.splitlines()]
    assert "+ Locks, page 4: A lock lifts a barge." in lines
    assert "+ A weir." in lines
    assert "299 copies; also in wiki/copy0, wiki/copy1, wiki/copy2 and 296 more" in lines
    assert "1 copy; also in wiki/copy0" in lines
    assert "also in wiki/copy0" in lines


def test_subgraph_is_shown_after_the_hits(monkeypatch: pytest.MonkeyPatch) -> None:
    ada, bo = {"label": "Ada", "type": "person"}, {"label": "Bo", "type": "person"}
    about = {"entities": [ada, bo], "relations": [{"subject": ada, "predicate": "knows", "object": bo}]}
    events = [ServerSentEvent("meta", META), ServerSentEvent("subgraph", about), ServerSentEvent("done", DONE)]
    result, stub = run(monkeypatch, "river", "--subgraph", events=events)
    assert stub.asked["subgraph"] is True
    assert result.output.splitlines()[:2] == [
        "About mentions Ada (person), Bo (person)",
        "About states Ada ─knows→ Bo",
    ]


def test_json_is_the_answer_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = run(monkeypatch, "river", "--json")
    assert json.loads(result.stdout)["path"] == "/v1/search"


EVERY_OPTION = [
    "river",
    "--answer",
    "--answer-form",
    "model",
    "--answer-sentences",
    "5",
    "--answer-words",
    "100",
    "-k",
    "3",
    "--offset",
    "10",
    "--cursor",
    "c",
    "--collection",
    "wiki",
    "--mode",
    "hybrid",
    "--group",
    "document",
    "--intent",
    "find",
    "--name",
    "Elbe",
    "--decompose",
    "--subgraph",
    "--after",
    "0:7",
    "--wait-seconds",
    "2",
    "--filter",
    "status=Final",
    "--min-confidence",
    "0.1",
    "--duplicates",
    "semantic",
    "--duplicate-threshold",
    "0.9",
    "--max-per-document",
    "1",
    "--diversity",
    "author",
    "--max-per-value",
    "1",
    "--channels",
    "vector,keyword",
    "--fusion",
    "weighted",
    "--vector-weight",
    "0.5",
    "--keyword-weight",
    "0.5",
    "--graph-weight",
    "0.5",
    "--no-reranker",
    "--graph-method",
    "expansion",
    "--edges",
    "link,is_a",
    "--hops",
    "1",
    "--context",
    "window",
    "--context-chunks",
    "1",
    "--explain",
    "--no-cache",
    "--facet",
    "status",
    "--facet",
    "author",
    "--sort",
    "-published",
]


def test_the_command_has_every_option_of_the_route(monkeypatch: pytest.MonkeyPatch) -> None:
    result, stub = run(monkeypatch, *EVERY_OPTION, "--json")
    assert result.exit_code == Exit.OK, result.output
    asked = json.loads(result.stdout)["params"]
    assert set(asked) == set(SearchRequest.model_fields)
    of_first_page = {name: value for name, value in asked.items() if name not in ("offset", "cursor")}
    request = SearchRequest.model_validate(of_first_page)  # further pages have no answer
    defaults = {name: field.get_default() for name, field in SearchRequest.model_fields.items()}
    unlike = {name for name, default in defaults.items() if getattr(request, name) != default}
    assert unlike == set(defaults) - {"mode", "offset", "cursor"}  # of modes the default alone takes the others
    assert request.edges == ("link", "is_a")
    del stub


@pytest.mark.parametrize(
    ("option", "value", "nearest"),
    [
        ("--mode", "hybird", "hybrid"),
        ("--group", "documents", "document"),
        ("--fusion", "rff", "rrf"),
        ("--channels", "vector,keywords", "keyword"),
        ("--intent", "sumarise", "summarise"),
        ("--graph-method", "page_rank", "pagerank"),
        ("--duplicates", "semantics", "semantic"),
        ("--context", "sections", "section"),
    ],
)
def test_a_wrong_value_is_refused_with_the_nearest(
    monkeypatch: pytest.MonkeyPatch, option: str, value: str, nearest: str
) -> None:
    result, stub = run(monkeypatch, "river", option, value)
    assert (result.exit_code, stub.asked) == (Exit.USAGE, {})
    words = " ".join(result.output.replace("│", " ").split())
    assert f"Did you mean {nearest!r}?" in words
    assert option in words


def test_what_is_like_nothing_is_refused_with_all_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = run(monkeypatch, "river", "--group", "zzz")
    words = " ".join(result.output.replace("│", " ").split())
    assert "'zzz' is not one of passage, chunk, document." in words
    assert "Did you mean" not in words


ANSWER = {
    "form": "extract", "text": "*Elbe*: It rises in the Giant Mountains. [1]", "confidence": 0.9, "refused": False,
    "reason": None,
    "citations": [
        {"number": 1, "text": "It rises in the Giant Mountains.", "title": "Elbe", "collection": "rivers",
         "document_id": "elbe.md", "section": ["Elbe", "Source"], "page": 3},
    ],
}  # fmt: skip


def asked(monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    stub = StubClient([ServerSentEvent("meta", META), ServerSentEvent("done", DONE | {"answer": answer})])
    monkeypatch.setattr(base_commands, "service_client", lambda url, data_dir: stub)
    return CliRunner().invoke(search.app, ["ask", "Where does the Elbe rise?", "--collection", "rivers"]), stub.asked


def test_ask_prints_an_answer_and_its_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    result, parameters = asked(monkeypatch, ANSWER)
    assert result.exit_code == Exit.OK
    assert "*Elbe*: It rises in the Giant Mountains. [1]" in result.output
    assert "[1] rivers/elbe.md, Source, page 3" in result.output
    assert (parameters["answer"], parameters["collection"]) == (True, "rivers")


def test_ask_says_why_there_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {"text": "", "citations": [], "refused": True, "reason": "No passage has [the word]."}
    result, _ = asked(monkeypatch, ANSWER | refused)
    assert result.exit_code == Exit.OK
    assert "No passage has [the word]." in result.output


@pytest.mark.parametrize(("dropped", "says"), [(0, ""), (1, "One sentence of the"), (3, "3 sentences of the")])
def test_ask_says_what_was_left_out_of_a_written_answer(
    monkeypatch: pytest.MonkeyPatch, dropped: int, says: str
) -> None:
    result, _ = asked(monkeypatch, ANSWER | {"form": "model", "dropped": dropped})
    assert says in result.output
    assert ("left out" in result.output) is bool(dropped)


def test_ask_has_no_option_that_makes_no_sense_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {each.name for each in get_command(search.app).commands["ask"].params}
    assert {"answer_form", "answer_sentences", "collection", "filter"} <= shown
    assert shown.isdisjoint({"answer", "offset", "cursor"})


def test_more_pages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    done = DONE | {"next_cursor": "abc"}
    result, _ = run(monkeypatch, "river", events=[ServerSentEvent("meta", META), ServerSentEvent("done", done)])
    assert "More: --cursor abc" in result.output


def test_options_are_explained_in_the_words_of_the_route() -> None:
    shown = {each.name: each for each in get_command(search.app).commands["search"].params}
    assert {name: shown[name].help for name in ("k", "wait_seconds", "max_per_value")} == {
        "k": "Hits per page.",
        "wait_seconds": "How long to wait for --after.",
        "max_per_value": "Hits of one value of the field in --diversity; 2.",
    }
    assert f"[1<=x<={MAX_HITS}]" in CliRunner().invoke(search.app, ["search", "--help"]).output
    assert shown["names"].opts == ["--name"]


@pytest.mark.parametrize("width", [60, 100, 200])
def test_help_is_in_six_parts_at_any_width(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    shown = CliRunner().invoke(search.app, ["search", "--help"]).output
    for part in (search.WHAT, search.FILTERS, search.RANKING, search.GRAPH, search.ANSWER, search.OUTPUT):
        assert f"─ {part} ─" in shown
    assert max(map(len, shown.splitlines())) <= width


def test_a_question_may_be_asked_in_a_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    posted: list[tuple[str, Any]] = []
    answer = {"text": "*Weir*: It opens in May. [1]", "refused": False, "citations": []}
    events = [ServerSentEvent("meta", META), ServerSentEvent("done", DONE | {"answer": answer})]

    class Posting(StubClient):
        def resumed_events(self, path: str, body: bytes) -> list[ServerSentEvent]:
            posted.append((path, json.loads(body)))
            return self._events

        def post(self, path: str, body: bytes) -> dict[str, Any]:
            return {"path": path, "body": json.loads(body)}

    monkeypatch.setattr(base_commands, "service_client", lambda url, data_dir: Posting(events))
    asked = ["ask", "and when?", "--conversation", "c1", "-k", "3"]
    result = CliRunner().invoke(search.app, asked)
    assert (result.exit_code, "It opens in May." in result.output) == (Exit.OK, True)
    body = {"q": "and when?", "k": 3, "conversation": "c1", "duplicates": "exact", "answer": True}
    assert posted == [("/v1/answers", body)]
    as_json = CliRunner().invoke(search.app, [*asked, "--json"])
    assert json.loads(as_json.output) == {"path": "/v1/answers", "body": body}
    assert CliRunner().invoke(search.app, ["search", "x", "--conversation", "c1"]).exit_code == Exit.USAGE
