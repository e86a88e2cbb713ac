"""Grafana's dashboard: each panel says what it shows, in base units, from series of the chosen processes."""

from typing import Any

import pytest
import yaml

from tests.support.monitoring import ROOT, dashboard, metrics_in, panel_expressions, panels

PROVISIONING = ROOT / "deploy" / "grafana" / "provisioning"
BASE_UNITS = {"s", "bytes", "percentunit", "short", "ops", "reqps"}
CONTRACT = {  # what an operator must be able to see
    "thalweg_ingest_lag_records", "thalweg_ingest_lag_seconds", "thalweg_index_freshness_seconds_bucket",
    "thalweg_store_position", "thalweg_stage_seconds_bucket", "thalweg_documents_total",
    "thalweg_chunks_embedded_total", "thalweg_snapshot_age_seconds", "thalweg_dead_letters_total",
    "thalweg_lance_fragments", "thalweg_search_seconds_bucket", "thalweg_sse_clients", "process_resident_memory_bytes",
    "thalweg_search_cache_hits_total",
}  # fmt: skip
EACH_PANEL = pytest.mark.parametrize("panel", list(panels(dashboard())), ids=lambda panel: panel["title"])


@EACH_PANEL
def test_each_panel_is_described_in_base_units_and_asks_the_chosen_source(panel: dict[str, Any]) -> None:
    assert len(panel["description"]) > 30
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["unit"] in BASE_UNITS
    assert defaults["thresholds"]["steps"][0]["value"] is None
    values = [step["value"] for step in defaults["thresholds"]["steps"][1:]]
    assert values == sorted(values)
    assert panel["datasource"]["uid"] == "${datasource}"
    assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}
    assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


@pytest.mark.parametrize(("title", "expression"), panel_expressions())
def test_each_series_is_of_the_chosen_processes(title: str, expression: str) -> None:
    assert metrics_in(expression), title
    assert expression.count("{") == expression.count('{job=~"$job", instance=~"$instance"')


def test_every_metric_of_the_contract_is_shown() -> None:
    shown = {metric for _, expression in panel_expressions() for metric in metrics_in(expression)}
    assert shown >= CONTRACT


def test_there_are_variables_for_source_job_and_instance() -> None:
    variables = {variable["name"]: variable for variable in dashboard()["templating"]["list"]}
    assert list(variables) == ["datasource", "job", "instance"]
    assert variables["datasource"]["type"] == "datasource"


def test_rows_fold_by_concern_and_panels_do_not_overlap() -> None:
    first, *others = [panel for panel in dashboard()["panels"] if panel["type"] == "row"]
    assert not first["collapsed"]
    assert all(row["collapsed"] and row["panels"] for row in others)
    for row in others:
        taken = set()
        for panel in row["panels"]:
            at = panel["gridPos"]
            cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
            assert not cells & taken, panel["title"]
            assert max(x for x, _ in cells) < 24
            taken |= cells


def test_no_two_panels_share_an_id() -> None:
    of = dashboard()
    ids = [panel["id"] for panel in panels(of)] + [row["id"] for row in of["panels"] if row["type"] == "row"]
    assert len(ids) == len(set(ids))


def test_the_provisioned_source_is_a_prometheus() -> None:
    [source] = yaml.safe_load((PROVISIONING / "datasources" / "prometheus.yaml").read_text())["datasources"]
    assert (source["type"], source["isDefault"]) == ("prometheus", True)
