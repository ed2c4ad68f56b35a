"""How fast a job writes rows to a group: by the writers alone, and by Spark."""
