"""What an audit costs in CPU seconds, with Spark and with DuckDB, on a generated trace."""
