"""The exception that ends `up`."""

EXIT_NOT_STARTED = 1
EXIT_USAGE = 2


class StartError(Exception):
    """Cause and remedy, as sentences for the terminal."""

    def __init__(self, message: str, exit_code: int = EXIT_NOT_STARTED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
