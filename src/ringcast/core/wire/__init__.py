"""The wire format: frames, their bytes, the fast path and direct placement."""
