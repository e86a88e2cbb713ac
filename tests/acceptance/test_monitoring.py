"""What dashboard and alerts ask for is on the `/metrics` of a running installation."""

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.support.monitoring import OF_PROMETHEUS, metrics_in, panel_expressions, rules
from tests.support.processes.installation import Installation
from tests.support.waiting import wait_until

SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}


def names(url: str) -> set[str]:
    """Of the series that a page has, or says it has once there is something to count."""
    page = httpx.get(url, timeout=30).text
    return {
        family.name + suffix
        for family in text_string_to_metric_families(page)
        for suffix in SUFFIXES.get(family.type, ())
    }


def test_every_series_of_dashboard_and_alerts_is_on_a_live_page(thalweg: Installation) -> None:
    status = httpx.get(f"{thalweg.url}/v1/status", timeout=30).json()
    pages = [f"{thalweg.url}/metrics", status["worker"]["metrics_url"]]
    expressions = [expression for _, expression in panel_expressions()] + [rule["expr"] for rule in rules()]
    asked = {metric for expression in expressions for metric in metrics_in(expression)} - OF_PROMETHEUS
    assert len(asked) > 30

    def missing() -> set[str]:
        return asked.difference(*map(names, pages))

    wait_until(lambda: not missing(), lambda: f"on no page: {missing()}", 30)
