"""How the product makes its Kafka clients."""

from pathlib import Path

ROOT = Path(__file__).parents[3]
PRODUCT = ("schemas", "indexer", "kafka_client", "streams", "query_api")
MAKERS = {"kafka_client/async_clients.py", "kafka_client/sync_clients.py"}
CLIENTS = ("AIOKafkaConsumer(", "AIOKafkaProducer(", "KafkaConsumer(", "KafkaProducer(", "KafkaAdminClient(")


def test_every_client_of_the_product_is_made_by_the_factory() -> None:
    made = {
        str(file.relative_to(ROOT))
        for package in PRODUCT
        for file in (ROOT / package).rglob("*.py")
        if any(client in file.read_text() for client in CLIENTS)
    }
    assert made == MAKERS
