"""What it costs to read a journal with Spark."""
