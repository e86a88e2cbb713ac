"""Kafka on this machine and its topics: jars, Java, the embedded broker; it never reads or writes a record."""
