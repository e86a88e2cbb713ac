"""What the dashboard and the alert rules ask Prometheus for."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import yaml

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "thalweg.json"
RULES = ROOT / "deploy" / "prometheus" / "rules.yaml"
OF_PROMETHEUS = {"up"}
"""Series that Prometheus makes itself."""
_OF_GRAFANA = {"$__rate_interval": "5m", "$__range": "1h"}


def metrics_in(expression: str) -> set[str]:
    """The names of the series that a PromQL expression, of a panel or a rule, asks for. Raises ValueError."""
    for variable, value in _OF_GRAFANA.items():
        expression = expression.replace(variable, value)
    found: set[str] = set()

    def visit(node: Any) -> bool:
        selector = node.vector_selector if isinstance(node, promql_parser.MatrixSelector) else node
        if isinstance(selector, promql_parser.VectorSelector):
            if selector.name is None:
                raise ValueError(f"{expression}: a series without a name")
            found.add(selector.name)
        return True

    promql_parser.walk(promql_parser.parse(expression), visit)
    return found


def dashboard() -> dict[str, Any]:
    return dict(json.loads(DASHBOARD.read_text()))


def panels(of: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Those of folded rows too; the rows themselves not."""
    for panel in of["panels"]:
        if panel["type"] == "row":
            yield from panels(panel)
        else:
            yield panel


def panel_expressions() -> list[tuple[str, str]]:
    """(title of the panel, expression)."""
    return [(panel["title"], target["expr"]) for panel in panels(dashboard()) for target in panel["targets"]]


def rules() -> list[dict[str, Any]]:
    """All alerts and recorded series."""
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
