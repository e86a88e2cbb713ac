"""The one place where Kafka clients are made: aiokafka's for event loops, kafka-python's for code that blocks."""
