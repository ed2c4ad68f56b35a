"""Ringcast beside the bare sockets and beside other systems, measured with real processes in one
run."""
