"""Kafka itself: its jars, the embedded broker, the topics; this room never reads or writes a record."""
