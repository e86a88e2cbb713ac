"""Process 1, the worker: Faust agents from the topics into the stores; and what runs a whole Thalweg on one machine."""
