"""Bare sockets that move the same messages: what is possible at all.

The same datagrams, packing and slicing as a member's, a fixed window in bytes and acks so that
nothing is lost, and nothing else: no repair, no membership, no API.
"""
