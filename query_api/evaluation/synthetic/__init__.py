"""`thalweg questions`: labelled questions made from what a running service has indexed, without a language model."""
