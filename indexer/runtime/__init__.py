"""The process and its machine: memory, processors, logs."""
