"""A real group for a long time, under load and faults: are its guarantees and its memory sound?"""
