"""This machine: child processes, ports, the data directory; this room knows neither Kafka nor a store."""
