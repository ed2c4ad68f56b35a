"""The only place with sockets, clocks and threads: it drives the pure stack over a real network."""
