"""Settings of the history from environment variables; part of `environment.py`."""

from dataclasses import dataclass

from console.alarm_settings import Reader

DAYS_MAX = 365
DAYS_DEFAULT = 30
MB_MIN, MB_MAX, MB_DEFAULT = 16, 1_000_000, 2_048
STORE = "CONSOLE_HISTORY_STORE"
STORES = ("files", "database")


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """Days of minutes, size of one cluster, and whether the console's PostgreSQL is the store."""

    days: int
    mb: int
    in_database: bool


def read_history_settings(read: Reader, database_url: str) -> HistorySettings:
    """Read the variables; problems go to the reader."""
    has_postgres = bool(database_url) and not database_url.startswith("sqlite:")
    store = read.text(STORE).lower() or ("database" if has_postgres else "files")
    if store not in STORES:
        read.complain(STORE, store, f"one of {', '.join(STORES)}")
    if store == "database" and not has_postgres:
        read.complain(STORE, store, "files, because DATABASE_URL names no PostgreSQL")
    return HistorySettings(
        days=read.number("CONSOLE_HISTORY_DAYS", 0, DAYS_MAX, DAYS_DEFAULT),
        mb=read.number("CONSOLE_HISTORY_MB", MB_MIN, MB_MAX, MB_DEFAULT),
        in_database=store == "database",
    )
