"""Reading Kafka as both processes do: committed records only, and never stopped for ever by a batch nobody can read."""
