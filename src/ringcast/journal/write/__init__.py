"""Writing a journal: the recorder, its log, sealing, recovery, retention."""
