"""The stores as the worker writes them. The query service never imports this package."""
