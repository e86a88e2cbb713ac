"""The topics: names under a prefix, and what each keeps."""

from schemas.settings import KafkaSettings
from schemas.topics import topic_specs


def test_every_topic_of_the_contract_is_there() -> None:
    specs = {spec.name: spec for spec in topic_specs(KafkaSettings(), "g0001")}
    assert {name: spec.partitions for name, spec in specs.items()} == {
        "thalweg.documents.v1": 4,
        "thalweg.curation.v1": 1,
        "thalweg.saved.v1": 1,
        "thalweg.contributions.g0001.v1": 1,
        "thalweg.indexed.v1": 4,
        "thalweg.provenance.v1": 4,
        "thalweg.dead-letters.v1": 4,
    }
    kept = {name: spec.config.get("retention.ms") for name, spec in specs.items()}
    assert kept["thalweg.indexed.v1"] == str(7 * 86_400_000)
    assert kept["thalweg.provenance.v1"] == str(90 * 86_400_000)
    assert kept["thalweg.dead-letters.v1"] == str(30 * 86_400_000)
    assert specs["thalweg.documents.v1"].config["cleanup.policy"] == "compact"


def test_provenance_is_kept_as_long_as_the_setting_says() -> None:
    specs = {spec.name: spec for spec in topic_specs(KafkaSettings(provenance_days=7), "g0001")}
    assert specs["thalweg.provenance.v1"].config["retention.ms"] == str(7 * 86_400_000)
