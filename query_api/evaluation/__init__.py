"""`thalweg evaluate`: how well a running service answers labelled questions; it asks over HTTP and opens no store."""
