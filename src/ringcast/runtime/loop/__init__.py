"""Waiting and waking: wakers for threads, waiting callers, locks."""
