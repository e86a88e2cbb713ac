"""Connections to the brokers that tests start."""

from schemas.kafka_connection import KafkaConnection


def plaintext(bootstrap_servers: str) -> KafkaConnection:
    return KafkaConnection(bootstrap_servers=bootstrap_servers)
