"""The web console in a Chromium: how soon it can be used, whether it stays responsive, whether its memory grows.

`python -m tests.bench.console` starts everything as a user does, loads the sample, and drives the page. Its last line
is one JSON object: `interactive_seconds` from the navigation to a search field that takes a key, in new contexts;
`script_bytes` that the first view loads; the `longest_task_ms` while 200 hits stream in; `memory`, the page's heap,
nodes and event listeners after every 100 of 500 searches, each time with the same hits shown and after a collection;
`graph`, the pictures a second that are really drawn of --nodes nodes in 2D, while they are arranged and while somebody
drags the picture, with the milliseconds of processor time that each takes; `many_edges`, the longest task where an
answer of 100,000 edges is drawn, and what the page says of it.

There is no graphics card: the processor draws. The Chromium is started as it starts itself on such a machine, except
that it is allowed WebGL.
"""

import argparse
import json
import re
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from tests.bench.bench import commit, machine, say
from tests.support.processes.installation import ROOT, Installation, installation

STARTS = 5
SEARCHES = 500
MEASURED_EVERY = 100
MANY_EDGES = 100_000
FRAME_SECONDS = 5
QUESTIONS = ["sentinel values", "typed dict", "release schedule", "lazy imports", "wheel format", "free threading"]
LONG_TASKS = """() => {
  window.longest = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
  }).observe({ type: "longtask" });
}"""
DRAWN_FRAMES = """() => {
  let frame = 0, last = -1;
  window.drawn = 0;
  const tick = () => ((frame += 1), requestAnimationFrame(tick));
  requestAnimationFrame(tick);
  for (const name of ['drawArrays', 'drawArraysInstanced', 'drawElements', 'drawElementsInstanced']) {
    const draw = WebGL2RenderingContext.prototype[name];
    WebGL2RenderingContext.prototype[name] = function (...rest) {
      if (last !== frame) window.drawn += 1;
      last = frame;
      return draw.apply(this, rest);
    };
  }
}"""
COUNT_FRAMES = """([seconds, drags]) => new Promise((resolve) => {
  const [before, began] = [window.drawn, performance.now()];
  const canvas = document.querySelector('.stage canvas.sigma-mouse');
  const box = canvas.getBoundingClientRect();
  const send = (target, type, turn) => target.dispatchEvent(new MouseEvent(type, {
    bubbles: true, clientX: box.x + 20 + 60 * (1 + Math.sin(turn)), clientY: box.y + 20 + 60 * (1 + Math.cos(turn)),
  }));
  if (drags) send(canvas, 'mousedown', 0);
  const tick = (now) => {
    if (now - began < 1000 * seconds) {
      if (drags) send(document, 'mousemove', now / 300);
      requestAnimationFrame(tick);
      return;
    }
    if (drags) send(document, 'mouseup', now / 300);
    resolve([window.drawn - before, (now - began) / 1000]);
  };
  requestAnimationFrame(tick);
})"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000, help="of the graph that is drawn")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, installation(Path(folder) / "data") as running:
        running.run("load", str(ROOT / "deploy" / "samples" / "peps.jsonl.xz"))
        with sync_playwright() as playwright:
            arguments = ["--no-sandbox", "--enable-unsafe-swiftshader"]
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
            figures: dict[str, Any] = first_view(browser, running)
            say(f"first view {figures}")
            figures["longest_task_ms"] = longest_task_ms(browser, running)
            say(f"longest task while 200 hits stream: {figures['longest_task_ms']:.0f} ms")
            figures["memory"] = memory(browser, running)
            figures["graph"] = graph_frames(browser, running, options.nodes)
            say(f"graph: {figures['graph']}")
            figures["many_edges"] = many_edges(browser, running)
            say(f"{MANY_EDGES:,} edges: {figures['many_edges']}")
            browser.close()
    print(json.dumps({"machine": machine(), "commit": commit(), **figures}))


def first_view(browser: Browser, running: Installation) -> dict[str, Any]:
    """Seconds in contexts without a cache, the median; bytes of scripts as they are sent."""
    seconds, scripts = [], 0
    for _ in range(STARTS):
        context = browser.new_context()
        page = context.new_page()
        sizes: list[int] = []
        page.on(
            "response", lambda each, sizes=sizes: sizes.append(len(each.body())) if each.url.endswith(".js") else None
        )
        began = time.perf_counter()
        page.goto(running.url, wait_until="commit")
        question = page.get_by_role("searchbox", name="Question")
        question.press("a")
        seconds.append(time.perf_counter() - began)
        page.wait_for_load_state("networkidle")
        scripts = sum(sizes)
        context.close()
    return {"interactive_seconds": round(statistics.median(seconds), 3), "script_bytes": scripts}


def longest_task_ms(browser: Browser, running: Installation) -> float:
    page = browser.new_context().new_page()
    page.goto(f"{running.url}/#/search")
    page.evaluate(LONG_TASKS)
    search(page, "python proposal", k=200)
    page.wait_for_function("() => document.querySelectorAll('article').length >= 200")
    longest = float(page.evaluate("window.longest"))
    page.context.close()
    return longest


def memory(browser: Browser, running: Installation) -> list[dict[str, Any]]:
    """Beside the hits of one question, which is asked again for each measurement: others have more or fewer nodes."""
    page = browser.new_context().new_page()
    page.goto(f"{running.url}/#/search")
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.enable")
    session.send("Performance.enable")
    measured = []
    for number in range(1, SEARCHES + 1):
        search(page, f"{QUESTIONS[number % len(QUESTIONS)]} {number}")
        if number % MEASURED_EVERY:
            continue
        search(page, "python proposal")
        for _ in range(2):  # what the first frees may hold more
            session.send("HeapProfiler.collectGarbage")
        metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
        figures = {
            "searches": number,
            "heap_mb": round(metrics["JSHeapUsedSize"] / 1e6, 2),
            "nodes": int(metrics["Nodes"]),
            "listeners": int(metrics["JSEventListeners"]),
        }
        say(f"memory {figures}")
        measured.append(figures)
    page.context.close()
    return measured


def search(page: Page, question: str, k: int = 10) -> None:
    """Returns once all its hits are shown."""
    page.evaluate("([q, k]) => (location.hash = '#/search?' + new URLSearchParams({ q, k }))", [question, str(k)])
    page.wait_for_function(
        "q => document.querySelector('input[type=search]')?.value === q"
        " && / hits? in /.test(document.querySelector('.summary')?.innerText ?? '')",
        arg=question,
    )


def graph_frames(browser: Browser, running: Installation, nodes: int) -> dict[str, Any]:
    """What is around the entity that is mentioned most, in three steps."""
    page = browser.new_context(viewport={"width": 1280, "height": 860}).new_page()
    page.add_init_script(f"({DRAWN_FRAMES})()")
    page.goto(f"{running.url}/#/graph?node=python&collection=peps&depth=3&nodes={nodes}")
    shown, edges = nodes_and_edges(page)
    for box in page.get_by_role("checkbox", checked=False).all():
        box.check()
    figures: dict[str, Any] = {"nodes": shown, "edges": edges, "arranging": frames(page, drags=False)}
    page.get_by_role("button", name="Pause").click()
    figures["dragging"] = frames(page, drags=True)
    page.context.close()
    return figures


def frames(page: Page, *, drags: bool) -> dict[str, float]:
    began = processor_seconds()
    drawn, seconds = page.evaluate(COUNT_FRAMES, [FRAME_SECONDS, drags])
    used = {kind: end - began[kind] for kind, end in processor_seconds().items()}
    return {
        "frames_per_second": round(drawn / seconds, 1),
        **{f"{kind}_ms_a_frame": round(1000 * each / max(1, drawn), 1) for kind, each in used.items()},
    }


def processor_seconds() -> dict[str, float]:
    """That the Chromium has used so far to run pages, with their workers, and to draw."""
    used = {"page": 0.0, "drawing": 0.0}
    for process in psutil.Process().children(recursive=True):
        command = " ".join(process.cmdline())
        kind = "page" if "--type=renderer" in command else "drawing" if "--type=gpu-process" in command else None
        if kind is not None:
            used[kind] += sum(process.cpu_times()[:2])
    return used


def many_edges(browser: Browser, running: Installation) -> dict[str, Any]:
    """An answer that the route does not give, which has fewer nodes; expanding one node after another comes to it."""
    page = browser.new_context(viewport={"width": 1280, "height": 860}).new_page()
    page.goto(f"{running.url}/#/graph?collection=peps")
    page.evaluate(LONG_TASKS)
    count = 4_000
    fields = {"kind": "document", "collection": "peps", "type": None}
    nodes = [{"id": f"n{at}", "label": f"Node {at}", "document_id": f"n{at}", **fields} for at in range(count)]
    edges = [
        {"from": f"n{at}", "to": f"n{(at + 7 * step) % count}", "kind": "links_to", "weight": 1 / step, "label": None}
        for at in range(count)
        for step in range(1, MANY_EDGES // count + 1)
    ]
    answer = {"nodes": nodes, "edges": edges, "truncated": True, "graph_position": 1}
    page.route("**/v1/graph?*", lambda route: route.fulfill(json=answer))
    page.evaluate("location.hash = '#/graph?node=n0&collection=peps'")
    nodes_and_edges(page)
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Table").click()
    page.locator("tr[data-key]").first.wait_for()
    said = page.locator(".told").inner_text()
    longest = float(page.evaluate("window.longest"))
    page.context.close()
    return {"longest_task_ms": longest, "said": said.strip()}


def nodes_and_edges(page: Page) -> tuple[int, int]:
    """As the page tells, once it has loaded some."""
    page.wait_for_function(
        "() => /^[1-9][0-9,]* nodes?, [1-9]/.test(document.querySelector('.told')?.innerText ?? '')", timeout=120_000
    )
    nodes, edges = re.findall(r"\d[\d,]*", page.locator(".told").inner_text())[:2]
    return int(nodes.replace(",", "")), int(edges.replace(",", ""))


if __name__ == "__main__":
    main()
