"""A trace that is still being written, judged view by view: nothing here needs Spark."""
