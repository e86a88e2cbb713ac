"""Alerts: each has its page, which says what to do, and a test by Prometheus's own tool."""

import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from tests.support.monitoring import ROOT, RULES, metrics_in, rules

RUNBOOKS = ROOT / "docs" / "runbooks"
SECTIONS = ["## What it means", "## How to see", "## What to do", "## When to worry"]
CONFIGURATION = yaml.safe_load((RULES.parent / "prometheus.yaml").read_text())
TESTS = yaml.safe_load((RULES.parent / "rules.test.yaml").read_text())["tests"]
EACH_ALERT = pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
PROMTOOL = shutil.which("promtool")


@EACH_ALERT
def test_each_alert_is_named_described_and_can_be_computed(rule: dict[str, Any]) -> None:
    assert rule["alert"].startswith("Thalweg")
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert metrics_in(rule["expr"])


@EACH_ALERT
def test_each_alert_has_a_page_that_says_what_to_do(rule: dict[str, Any]) -> None:
    page = (ROOT / rule["annotations"]["runbook_url"]).read_text()
    assert page.startswith(f"# {rule['alert']}\n\nSeverity: {rule['labels']['severity']}.\n")
    assert [line for line in page.splitlines() if line.startswith("## ")] == SECTIONS
    index = (RUNBOOKS / "README.md").read_text()
    assert f"[{rule['alert']}]({rule['annotations']['runbook_url'].rpartition('/')[2]})" in index


def test_each_page_has_an_alert() -> None:
    pages = {str(page.relative_to(ROOT)) for page in RUNBOOKS.glob("*.md")} - {"docs/runbooks/README.md"}
    assert pages == {rule["annotations"]["runbook_url"] for rule in rules()}


@EACH_ALERT
def test_each_alert_fires_in_a_test_of_the_rules(rule: dict[str, Any]) -> None:
    samples = [sample for test in TESTS for each in test.get("promql_expr_test", []) for sample in each["exp_samples"]]
    assert any(f'"{rule["alert"]}"' in sample["labels"] for sample in samples)


def test_the_rules_name_the_jobs_that_are_scraped() -> None:
    named = {job for rule in rules() for job in re.findall(r'job="([\w-]+)"', rule["expr"])}
    assert named == {job["job_name"] for job in CONFIGURATION["scrape_configs"]}


@pytest.mark.skipif(
    PROMTOOL is None,
    reason="promtool is not here: it is in Debian's package prometheus, or "
    "`go install github.com/prometheus/prometheus/cmd/promtool@latest`",
)
def test_prometheus_accepts_the_rules_and_their_tests_pass() -> None:
    assert PROMTOOL is not None
    for words in (["check", "rules", "rules.yaml"], ["test", "rules", "rules.test.yaml"]):
        done = subprocess.run(
            [PROMTOOL, *words], cwd=RULES.parent, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
