#!/usr/bin/env python
"""The console's command line in a clone; an installed package has the same as `gantry`."""

import sys

from console.command_line import main

if __name__ == "__main__":
    sys.exit(main())
