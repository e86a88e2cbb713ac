"""The process and its machine: processors, memory, logs, files cached for the user."""
