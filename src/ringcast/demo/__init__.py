"""The main job, end to end: a real group under faults, recorded, then audited by Spark."""
