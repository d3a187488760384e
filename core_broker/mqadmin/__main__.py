"""`python -m core_broker.mqadmin`, or `mqadmin`."""

from core_broker.mqadmin.cli import main

if __name__ == "__main__":
    main()
