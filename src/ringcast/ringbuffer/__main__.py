"""Prints the story: `python -m ringcast.ringbuffer`."""

from ringcast.ringbuffer.story import main

raise SystemExit(main())
