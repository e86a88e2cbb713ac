"""The library: parse, chunk, embed, extract, link; write and read the stores. No Kafka, no HTTP, no environment."""
