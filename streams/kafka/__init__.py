"""The worker's side of Kafka: Faust's transport, what is sent, topics and their partitions, dead letters."""
