"""The web console in a Chromium: how soon it can be used, whether it stays responsive, whether its memory grows.

`python -m tests.bench.console` starts everything as a user does, loads the sample, and drives the page. Its last line
is one JSON object: `interactive_seconds` from the navigation to a search field that takes a key, in new contexts;
`script_bytes` that the first view loads; the `longest_task_ms` while 200 hits stream in; `heap_growth` over 500
searches, of the page's heap after a collection, over that after the first 50; `graph_frames_per_second` of a graph of
--nodes nodes while it is arranged in 2D, which without a graphics card is drawn by the processor.
"""

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.bench.bench import commit, machine, say
from tests.support.processes.installation import ROOT, Installation, installation

STARTS = 5
WARM_SEARCHES = 50
SEARCHES = 500
FRAME_SECONDS = 5
QUESTIONS = ["sentinel values", "typed dict", "release schedule", "lazy imports", "wheel format", "free threading"]
LONG_TASKS = """() => {
  window.longest = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
  }).observe({ type: "longtask" });
}"""
FRAMES = """(seconds) => new Promise((resolve) => {
  let frames = 0;
  const end = performance.now() + 1000 * seconds;
  const tick = (now) => (now < end ? ((frames += 1), requestAnimationFrame(tick)) : resolve(frames / seconds));
  requestAnimationFrame(tick);
})"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000, help="of the graph that is drawn")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, installation(Path(folder) / "data") as running:
        running.run("load", str(ROOT / "deploy" / "samples" / "peps.jsonl.xz"))
        with sync_playwright() as playwright:
            arguments = [
                "--no-sandbox",
                "--use-angle=swiftshader",
                "--enable-unsafe-swiftshader",
                "--js-flags=--expose-gc",
            ]
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
            figures: dict[str, Any] = first_view(browser, running)
            say(f"first view {figures}")
            figures["longest_task_ms"] = longest_task_ms(browser, running)
            say(f"longest task while 200 hits stream: {figures['longest_task_ms']:.0f} ms")
            figures["heap_growth"] = heap_growth(browser, running)
            say(f"heap after {SEARCHES} searches: {figures['heap_growth']:.2f} of that after {WARM_SEARCHES}")
            figures |= graph_frames(browser, running, options.nodes)
            say(f"graph: {figures['graph_frames_per_second']:.0f} frames a second of {figures['graph_nodes']} nodes")
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


def heap_growth(browser: Browser, running: Installation) -> float:
    page = browser.new_context().new_page()
    page.goto(f"{running.url}/#/search")
    after_warming = 0.0
    for number in range(SEARCHES):
        search(page, f"{QUESTIONS[number % len(QUESTIONS)]} {number}")
        if number % WARM_SEARCHES == 0:
            say(f"{number} searches: heap of {heap_bytes(page) / 1e6:.2f} MB")
        if number == WARM_SEARCHES:
            after_warming = heap_bytes(page)
    growth = heap_bytes(page) / after_warming
    page.context.close()
    return round(growth, 3)


def search(page: Page, question: str, k: int = 10) -> None:
    """Returns once all its hits are shown."""
    page.evaluate("([q, k]) => (location.hash = '#/search?' + new URLSearchParams({ q, k }))", [question, str(k)])
    page.wait_for_function(
        "q => document.querySelector('input[type=search]')?.value === q"
        " && / hits? in /.test(document.querySelector('.summary')?.innerText ?? '')",
        arg=question,
    )


def heap_bytes(page: Page) -> float:
    page.evaluate("gc()")
    return float(page.evaluate("performance.memory.usedJSHeapSize"))


def graph_frames(browser: Browser, running: Installation, nodes: int) -> dict[str, Any]:
    """The picture begins at the entity that is mentioned most, and is expanded until it has so many nodes."""
    page = browser.new_context(viewport={"width": 1280, "height": 860}).new_page()
    page.goto(f"{running.url}/#/graph?node=python&collection=peps&depth=3")
    page.wait_for_function(
        "() => Number(document.querySelector('.told')?.innerText.replaceAll(',', '').split(' ')[0]) > 1"
    )
    shown = 0
    for _ in range(60):
        shown = int(page.locator(".told").inner_text().replace(",", "").split()[0])
        if shown >= nodes:
            break
        page.evaluate("document.activeElement?.blur()")
        expand_another(page)
    for box in page.get_by_role("checkbox").all():
        box.check()
    rate = float(page.evaluate(FRAMES, FRAME_SECONDS))
    page.context.close()
    return {"graph_nodes": shown, "graph_frames_per_second": round(rate, 1)}


def expand_another(page: Page) -> None:
    """Chooses a node of the list of those that are shown, and expands it."""
    options = page.locator("#graph-nodes option").evaluate_all("all => all.map(each => each.value)")
    page.evaluate("window.expanded ??= 0")
    at = int(page.evaluate("(window.expanded += 7)")) % max(1, len(options))
    field = page.get_by_label("Find in the picture")
    field.fill(options[at])
    field.press("Enter")
    page.evaluate("document.activeElement?.blur()")
    page.keyboard.press("e")
    page.wait_for_function("() => !document.querySelector('.told')?.innerText.includes('Loading')")


if __name__ == "__main__":
    main()
