"""For operators: logs, metrics, status."""
