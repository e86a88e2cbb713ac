"""What an evaluation found, for machines (JSON), for text (Markdown) and for the eye (one HTML page with plots)."""
