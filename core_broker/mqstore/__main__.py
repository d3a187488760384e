"""`python -m core_broker.mqstore`, or `mqstore`: inspects a store folder of Gantry or RocketMQ.

    mqstore ls DIR          the contents of the folder
    mqstore dump DIR        records, units of a queue, the index chain of a key
    mqstore verify DIR      the consistency of all files with the commit log
    mqstore repair DIR      consume queues and index again, from the commit log

Exit codes: 0 in order, 1 problems were found (verify) or nothing matches (dump), 2 wrong options,
an unreadable folder, or a folder in use (repair).
"""

import sys

from core_broker.mqstore.cli import main

if __name__ == "__main__":
    sys.exit(main())
