"""The command as a module: `python -m ringcast` is `ringcast`, on the path or not."""

from ringcast.cli.main import main

raise SystemExit(main())
