"""`thalweg up`: child processes started, watched, restarted."""
