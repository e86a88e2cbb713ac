"""Connections to the brokers that tests start."""

from schemas.settings import KafkaConnection


def plaintext(bootstrap_servers: str) -> KafkaConnection:
    return KafkaConnection(bootstrap_servers=bootstrap_servers)
