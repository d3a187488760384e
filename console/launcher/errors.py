"""The one exception with which `up` refuses to go on."""

EXIT_NOT_STARTED = 1
EXIT_USAGE = 2


class StartError(Exception):
    """What went wrong and what to change, as sentences for the person at the terminal."""

    def __init__(self, message: str, exit_code: int = EXIT_NOT_STARTED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
