"""A real Kafka on this machine: jars, Java, the broker."""
