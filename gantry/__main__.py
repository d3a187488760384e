"""`python -m gantry`: the command `gantry` of an installed package."""

import sys

from console.command_line import main

if __name__ == "__main__":
    sys.exit(main())
