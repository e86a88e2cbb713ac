"""The machine: child processes, ports, the data directory as a place; it never opens a store and knows no Kafka."""
