"""Prints the story: `python -m ringcast.core.interleave`."""

from ringcast.core.interleave.story import main

raise SystemExit(main())
