"""The pure core: windows, batches, frames and the stack; no sockets, clocks or threads."""
