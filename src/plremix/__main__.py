"""`python -m plremix` is the same program as `plremix`."""

import sys

from plremix.cli import main

if __name__ == "__main__":
    sys.exit(main())
