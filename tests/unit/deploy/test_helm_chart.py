"""The Helm chart: its values fit their schema, and what it renders is what Kubernetes takes."""

import json
import re
import shutil
import subprocess
from importlib.util import find_spec
from typing import Any

import jsonschema_rs
import pytest
import yaml

from tests.settings_table import rows
from tests.support.monitoring import DASHBOARD, ROOT, RULES

CHART = ROOT / "deploy" / "helm" / "thalweg"
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
KUBERNETES = "1.30"
NEEDED = ("kafka.bootstrapServers=kafka:9092", "apiKey.value=0123456789abcdef")
ALL = (
    *NEEDED, "ingress.enabled=true", "podDisruptionBudget.enabled=true", "serviceMonitor.enabled=true",
    "prometheusRule.enabled=true", "dashboard.enabled=true", "kafka.caSecret=authority", "kafka.sasl.mechanism=PLAIN",
    "kafka.sasl.username=thalweg", "kafka.sasl.password=secret", "settings.THALWEG_WORKER__PARSERS=2",
)  # fmt: skip
HELM = shutil.which("helm")
needs_helm = pytest.mark.skipif(HELM is None, reason="helm is not here: `go install helm.sh/helm/v3/cmd/helm@latest`")


def helm(command: str, *values: str) -> subprocess.CompletedProcess[str]:
    assert HELM is not None
    chart = [str(CHART)] if command == "lint" else ["release", str(CHART)]
    words = [HELM, command, *chart, "--kube-version", KUBERNETES, *(f"--set={value}" for value in values)]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


def rendered(*values: str) -> list[dict[str, Any]]:
    done = helm("template", *values)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def only(kind: str, documents: list[dict[str, Any]]) -> dict[str, Any]:
    [found] = [document for document in documents if document["kind"] == kind]
    return found


def test_the_schema_is_one_and_the_defaults_fit_it() -> None:
    jsonschema_rs.meta.validate(SCHEMA)
    jsonschema_rs.validate(SCHEMA, VALUES)
    assert set(VALUES) | {"global"} == set(SCHEMA["properties"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"replicas": 2},
        {"apiKey": {"value": "short"}},
        {"kafka": {"bootstrapServers": "kafka"}},
        {"settings": {"PATH": "/"}},
        {"persistence": {"size": "20", "accessModes": ["ReadWriteOnce"]}},
    ],
    ids=json.dumps,
)
def test_values_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    assert not jsonschema_rs.is_valid(SCHEMA, VALUES | wrong)


def test_rules_and_dashboard_are_those_of_the_other_folders() -> None:
    assert (CHART / "files" / "rules.yaml").read_bytes() == RULES.read_bytes()
    assert (CHART / "files" / "thalweg.json").read_bytes() == DASHBOARD.read_bytes()


def test_every_setting_named_exists() -> None:
    setting = re.compile(r"THALWEG_[A-Z_]+__[A-Z_]+")
    known = {name for row in rows() for name in setting.findall(row)}
    used = {name for file in CHART.rglob("*.*") if file.is_file() for name in setting.findall(file.read_text())}
    assert "THALWEG_KAFKA__BOOTSTRAP_SERVERS" in used
    assert used <= known


@needs_helm
def test_helm_finds_nothing_wrong() -> None:
    done = helm("lint", *NEEDED)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_helm
@pytest.mark.parametrize(("values", "said"), [(NEEDED[:1], "apiKey.value or"), (NEEDED[1:], "kafka.bootstrapServers")])
def test_without_a_broker_or_a_key_it_says_what_is_needed(values: tuple[str, ...], said: str) -> None:
    done = helm("template", *values)
    assert done.returncode != 0
    assert said in done.stderr


@needs_helm
def test_worker_and_query_service_share_a_pod_without_rights() -> None:
    pod = only("StatefulSet", rendered(*NEEDED))["spec"]["template"]["spec"]
    assert [container["name"] for container in pod["containers"]] == ["worker", "query"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["automountServiceAccountToken"] is False
    for container in pod["containers"]:
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"]
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert security["allowPrivilegeEscalation"] is False
        assert {"name": "data", "mountPath": "/data"} in container["volumeMounts"]
        assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    worker, query = pod["containers"]
    assert query["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert worker["readinessProbe"]["httpGet"]["path"] == "/livez"  # searches go on while Kafka is away


@needs_helm
def test_secrets_are_read_from_secrets() -> None:
    documents = rendered(*ALL)
    for container in only("StatefulSet", documents)["spec"]["template"]["spec"]["containers"]:
        for variable in container["env"]:
            if re.search("PASSWORD|API_KEY", variable["name"]):
                assert "secretKeyRef" in variable["valueFrom"]
    assert only("Secret", documents)["stringData"]["sasl-password"] == "secret"
    assert "Secret" not in {each["kind"] for each in rendered(NEEDED[0], "apiKey.existingSecret=mine")}


@needs_helm
def test_the_monitor_names_the_jobs_and_the_rules_are_all_there() -> None:
    documents = rendered(*ALL)
    jobs = [
        relabeling["replacement"]
        for endpoint in only("ServiceMonitor", documents)["spec"]["endpoints"]
        for relabeling in endpoint["relabelings"]
    ]
    assert jobs == ["thalweg-worker", "thalweg-query"]
    assert only("PrometheusRule", documents)["spec"] == yaml.safe_load(RULES.read_text())
    assert json.loads(only("ConfigMap", documents)["data"]["thalweg.json"]) == json.loads(DASHBOARD.read_text())


@needs_helm
@pytest.mark.skipif(
    find_spec("kubernetes_validate") is None,
    reason="kubernetes-validate is not here (100 MB of schemas): `pip install kubernetes-validate`",
)
def test_kubernetes_would_take_what_is_rendered() -> None:
    import kubernetes_validate

    checked = 0
    for document in rendered(*ALL):
        if not document["apiVersion"].startswith("monitoring.coreos.com/"):
            kubernetes_validate.validate(document, KUBERNETES, strict=True)
            checked += 1
    assert checked >= 8
