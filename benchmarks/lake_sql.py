"""A day of synthetic traffic as tables of a trace lake, created by DuckDB.

A row of `message` is a message, a row of `delivery` a delivery to a group, a row of `missed` a
message without an attempt of a group; the events are the records of messages and deliveries, and
the tables are Spark's results for these events. Every value follows from the row number and the
seed.

Most groups miss one message of 200. The second group of every eighth topic has a tag filter, which
rejects one message of three.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import duckdb

from spark_jobs.tables.message_flow import LISTED_PER_HOUR_MAX
from trace.latency import LOG_GAMMA
from trace.subscriptions import Subscription, filter_of
from trace.tables import TABLES, Table

DAY_MS: Final = 86_400_000
TOPICS: Final = 40
#: One event of the send, and two events per delivery.
EVENTS_PER_MESSAGE: Final = 3.75
#: Topics with this remainder of the division by FILTERING have a group with a tag filter.
FILTERING: Final = 8
FILTER: Final = "tag-0 || tag-1"
REJECTED: Final = "tag-2"
#: Topics with a remainder other than 0 have two groups.
GROUPS_MAX: Final = 2
#: Age of the oldest message that groups have not passed yet, ms.
LAG_MS: Final = DAY_MS

_MESSAGES: Final = """
CREATE OR REPLACE TEMP TABLE message AS
WITH drawn AS (
    SELECT i, hash(i, $seed) % 1000003 / 1000003.0 AS u,
           hash(i, $seed, 1) % 1000003 / 1000003.0 AS v,
           hash(i, $seed, 2) % 1000003 / 1000003.0 AS w
    FROM range($messages) AS numbers(i)
), placed AS (
    SELECT i, u, v, w, floor($topics * u * u)::INT AS t,
           $begin::BIGINT + floor(i * 86400000.0 / $messages)::BIGINT AS sent_ms
    FROM drawn
)
SELECT *, 'topic-' || t AS topic, 'producer-' || t % 25 AS producer_group,
       CASE t % 10 WHEN 7 THEN 4 WHEN 3 THEN 3 WHEN 5 THEN 2 ELSE 0 END AS msg_type,
       1 + floor(-3 * ln((v + 1e-6) / 1.00001))::BIGINT AS cost_ms, w > 0.002 AS success,
       200 + (i % 1800) AS bytes, printf('7F0000010000%012X%08X', i, $seed) AS msg_id,
       'tag-' || i % 3 AS tags
FROM placed
"""
#: One row per message and group that subscribes to the topic.
_EXPECTED: Final = f"""
CREATE OR REPLACE TEMP TABLE expected AS
SELECT m.*, g, 'group-' || t || '-' || g AS consumer_group, sent_ms + cost_ms AS stored_ms,
       hash(i, g, $seed, 7) % 200 != 0
           AND NOT (g = 1 AND t % {FILTERING} = 1 AND tags = '{REJECTED}') AS is_traced
FROM message m, range({GROUPS_MAX}) AS groups(g) WHERE m.success AND g <= t % {GROUPS_MAX}
"""
_MISSED: Final = """
CREATE OR REPLACE TEMP TABLE missed AS SELECT * FROM expected WHERE NOT is_traced AND msg_type != 3
"""
_DELIVERIES: Final = """
CREATE OR REPLACE TEMP TABLE delivery AS
WITH drawn AS (
    SELECT *, exp(3 + 1.2 * sqrt(-2 * ln((1 + hash(i, g, $seed, 3) % 1000003) / 1000004.0))
                 * cos(6.2831853 * (hash(i, g, $seed, 4) % 1000003) / 1000003.0)
           )::BIGINT AS latency_ms,
           1 + (hash(i, g, 5) % 40)::BIGINT AS duration_ms,
           hash(i, g, 6) % 1000 >= 20 AS first_success
    FROM expected WHERE is_traced
)
SELECT *, stored_ms + latency_ms AS start_ms,
       cost_ms + latency_ms + duration_ms AS end_to_end_ms
FROM drawn
"""
_KEYS: Final = "topic, producer_group, consumer_group, msg_type"
_NO_GROUP: Final = "NULL::VARCHAR AS consumer_group"
_BUCKET: Final = "CASE WHEN {0} > 1 THEN ceil(ln({0}) / {1})::INT ELSE 0 END AS bucket"

_EVENTS: Final = """
SELECT 'bench' AS broker, (i % 4)::INT AS queue_id, i AS queue_offset, 0 AS record_index,
       sent_ms AS stored_ms, 'Pub' AS kind, sent_ms AS event_ms, producer_group AS group_name,
       topic, msg_id, tags, bytes AS body_bytes, cost_ms, msg_type::BIGINT AS msg_type, success
FROM message
UNION ALL BY NAME
SELECT 'bench' AS broker, (i % 4)::INT AS queue_id, i AS queue_offset, 1 AS record_index,
       start_ms AS stored_ms, 'SubBefore' AS kind, start_ms AS event_ms,
       consumer_group AS group_name, topic, msg_id, 0::BIGINT AS retry_times,
       msg_id || g AS request_id
FROM delivery
UNION ALL BY NAME
SELECT 'bench' AS broker, (i % 4)::INT AS queue_id, i AS queue_offset, 2 AS record_index,
       start_ms AS stored_ms, 'SubAfter' AS kind, start_ms + duration_ms AS event_ms, msg_id,
       consumer_group AS group_name, msg_id || g AS request_id, duration_ms AS cost_ms,
       first_success AS success
FROM delivery
"""
_MINUTE: Final = f"""
SELECT sent_ms // 60000 * 60000 AS minute_ms, topic, producer_group, {_NO_GROUP}, msg_type,
       count(*) AS sends, count(*) FILTER (NOT success) AS send_failures,
       sum(bytes) FILTER (success)::BIGINT AS bytes, 0 AS attempts, 0 AS successes, 0 AS failures,
       0 AS unfinished, 0 AS retries, 0 AS dead_letters, 0 AS deliveries, 0 AS consumed
FROM message GROUP BY ALL
UNION ALL BY NAME
SELECT start_ms // 60000 * 60000 AS minute_ms, {_KEYS}, 0 AS sends, 0 AS send_failures, 0 AS bytes,
       count(*) + count(*) FILTER (NOT first_success) AS attempts, count(*) AS successes,
       count(*) FILTER (NOT first_success) AS failures, 0 AS unfinished,
       count(*) FILTER (NOT first_success) AS retries, 0 AS dead_letters, count(*) AS deliveries,
       count(*) AS consumed
FROM delivery GROUP BY ALL
"""
_LATENCY: Final = f"""
SELECT sent_ms // 60000 * 60000 AS minute_ms, topic, producer_group, {_NO_GROUP}, msg_type,
       'send_cost' AS measure, {_BUCKET.format("cost_ms", LOG_GAMMA)}, count(*) AS count
FROM message GROUP BY ALL
UNION ALL BY NAME
SELECT start_ms // 60000 * 60000 AS minute_ms, {_KEYS}, 'latency' AS measure,
       {_BUCKET.format("latency_ms", LOG_GAMMA)}, count(*) AS count
FROM delivery GROUP BY ALL
UNION ALL BY NAME
SELECT start_ms // 60000 * 60000 AS minute_ms, {_KEYS}, 'end_to_end' AS measure,
       {_BUCKET.format("end_to_end_ms", LOG_GAMMA)}, count(*) AS count
FROM delivery GROUP BY ALL
"""
_EDGES: Final = f"""
SELECT sent_ms // 3600000 * 3600000 AS hour_ms, producer_group, topic, {_NO_GROUP},
       count(*) FILTER (success) AS messages, sum(bytes)::BIGINT AS bytes, count(*) AS attempts,
       count(*) FILTER (NOT success) AS failures, 0 AS dead_letters, 0 AS untraced,
       min(sent_ms) AS first_ms, max(sent_ms) AS last_ms
FROM message GROUP BY ALL
UNION ALL BY NAME
SELECT start_ms // 3600000 * 3600000 AS hour_ms, producer_group, topic, consumer_group,
       count(*) AS messages, 0 AS bytes, count(*) AS attempts,
       count(*) FILTER (NOT first_success) AS failures, 0 AS dead_letters, 0 AS untraced,
       min(start_ms) AS first_ms, max(start_ms) AS last_ms
FROM delivery GROUP BY ALL
UNION ALL BY NAME
SELECT stored_ms // 3600000 * 3600000 AS hour_ms, producer_group, topic, consumer_group,
       0 AS messages, 0 AS bytes, 0 AS attempts, 0 AS failures, 0 AS dead_letters,
       count(*) AS untraced, min(stored_ms) AS first_ms, max(stored_ms) AS last_ms
FROM missed GROUP BY ALL
"""
_SLOW: Final = f"""
SELECT start_ms AS at_ms, 'slow' AS reason, {_KEYS}, msg_id, stored_ms, start_ms, latency_ms,
       end_to_end_ms, duration_ms, 1 AS attempts, first_success AS success
FROM delivery
QUALIFY row_number() OVER (PARTITION BY start_ms // 3600000, consumer_group
                           ORDER BY latency_ms DESC, msg_id) <= {LISTED_PER_HOUR_MAX}
UNION ALL BY NAME
SELECT stored_ms AS at_ms, 'untraced' AS reason, {_KEYS}, msg_id, tags, stored_ms, 0 AS attempts
FROM missed
QUALIFY row_number() OVER (PARTITION BY stored_ms // 3600000, consumer_group, tags
                           ORDER BY stored_ms, msg_id) <= {LISTED_PER_HOUR_MAX}
"""
_UNTRACED: Final = f"""
SELECT stored_ms // 60000 * 60000 AS minute_ms, {_KEYS}, tags, count(*) AS messages,
       min(stored_ms) AS first_ms, max(stored_ms) AS last_ms
FROM missed GROUP BY ALL
"""
_SELECTS: Final = {
    "events": _EVENTS,
    "minute": _MINUTE,
    "latency": _LATENCY,
    "edges": _EDGES,
    "slow": _SLOW,
    "untraced": _UNTRACED,
}


def fill_day(root: Path, begin_ms: int, events: int, *, seed: int) -> int:
    """Write the tables of one day below `root` as run 1; returns the number of events."""
    messages = int(events / EVENTS_PER_MESSAGE)
    connection = duckdb.connect(":memory:")
    try:
        given = {"seed": seed, "messages": messages}
        connection.execute(_MESSAGES, {**given, "begin": begin_ms, "topics": TOPICS})
        connection.execute(_EXPECTED, {"seed": seed})
        connection.execute(_DELIVERIES, {"seed": seed})
        connection.execute(_MISSED)
        # Deliveries after midnight belong to the files of the next day.
        end = {"end": begin_ms + DAY_MS}
        connection.execute("DELETE FROM delivery WHERE start_ms >= $end", end)
        for name, select in _SELECTS.items():
            _write(connection, root, TABLES[name], select)
        row = connection.execute(
            "SELECT (SELECT count(*) FROM message) + 2 * (SELECT count(*) FROM delivery)"
        ).fetchone()
        assert row is not None
        return int(row[0])
    finally:
        connection.close()


def subscriptions(end_ms: int) -> Iterator[Subscription]:
    """What the cluster said at `end_ms`: the filters of all groups, all LAG_MS behind."""
    for t in range(TOPICS):
        for g in range(1 + t % GROUPS_MAX):
            is_filtering = g == 1 and t % FILTERING == 1
            kind, expression, tags = filter_of("TAG", FILTER if is_filtering else "*")
            names = f"topic-{t}", f"group-{t}-{g}"
            consumed_ms = end_ms - LAG_MS
            yield Subscription(*names, 0, None, kind, expression, tags, consumed_ms, end_ms)


def _write(connection: duckdb.DuckDBPyConnection, root: Path, table: Table, select: str) -> None:
    """Write one file per hour, with all columns of the table in their types."""
    types = {"bigint": "BIGINT", "int": "INTEGER", "string": "VARCHAR"}
    connection.execute(f"CREATE OR REPLACE TEMP VIEW made AS {select}")
    there = {row[0] for row in connection.execute("DESCRIBE made").fetchall()}
    columns = ", ".join(
        f"{column.name if column.name in there else 'NULL'}"
        f"::{types.get(column.type, column.type.upper())} AS {column.name}"
        for column in table.columns
    )
    moment = f"make_timestamp({table.time_column} * 1000)"
    connection.execute(
        f"""
        COPY (
            SELECT {columns}, strftime({moment}, '%Y-%m-%d') AS day,
                   strftime({moment}, '%H') AS hour, 1 AS run
            FROM made
        ) TO '{root / table.name}' (
            FORMAT parquet, COMPRESSION zstd, PARTITION_BY (day, hour, run), OVERWRITE_OR_IGNORE
        )
        """
    )
