"""What keeps a worker running: store threads, retries, progress, watchdog, maintenance."""
