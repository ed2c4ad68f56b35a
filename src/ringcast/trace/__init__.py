"""The protocol events of a member, written for the audit, and the checks that need no Spark."""
