"""Datagrams over UDP: where members are, what the kernel joins, cuts and keeps away."""
