"""How the product makes its consumers."""

from pathlib import Path

ROOT = Path(__file__).parents[3]
PRODUCT = ("schemas", "indexer", "kafka_client", "streams", "query_api")
# reads no record: it asks a group for its offsets, and the log for its ends
OFFSETS_ONLY = "streams/runtime/positions.py"


def test_every_consumer_of_the_product_reads_committed_records_and_whole_batches() -> None:
    made = {
        str(file.relative_to(ROOT))
        for package in PRODUCT
        for file in (ROOT / package).rglob("*.py")
        if "AIOKafkaConsumer(" in file.read_text()
    }
    assert made == {OFFSETS_ONLY}
