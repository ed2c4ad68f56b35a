"""One member of a group: its stack over a transport, and what its callers wait for."""
