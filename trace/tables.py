"""The tables of the trace lake: columns, types, units, meaning.

Spark writes the tables and DuckDB reads them; both take names and types from this module. Spark and
DuckDB use the same names for all types here. Times are milliseconds since 1970 in UTC, durations
are milliseconds, `bytes` are bytes of bodies before compression, other counts are pieces. An
unknown value is null, never 0 or "".

`time_column` partitions every table into hours (see `trace.lake` for the folders).
"""

from typing import Final, NamedTuple

from trace.codec import MessageType

SLOW_REASON: Final = "slow"
UNTRACED_REASON: Final = "untraced"

#: Maximum age, in hours, of a send or first attempt that is joined with later attempts.
LOOKBACK_HOURS: Final = 24

#: Measures with percentiles and histograms. send_cost: duration of the producer's call to the
#: broker. latency: from the store time to the start of the group's first attempt. end_to_end: from
#: the producer's call to the end of the group's first success.
MEASURES: Final = ("send_cost", "latency", "end_to_end")
LEVELS: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

#: Names of `msg_type`: normal, transaction_half, transaction_commit, delay, order.
MESSAGE_KINDS: Final = {int(kind): kind.name.lower() for kind in MessageType}


class Column(NamedTuple):
    """One column of a table."""

    name: str
    type: str
    meaning: str


class Table(NamedTuple):
    """One table: a folder of the lake."""

    name: str
    time_column: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> str:
        """`name type, …` in the syntax of Spark and DuckDB."""
        return ", ".join(f"{column.name} {column.type}" for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def _columns(text: str) -> tuple[Column, ...]:
    """Parse one line per column: name, type, meaning."""
    lines = (line.split(None, 2) for line in text.splitlines() if line)
    return tuple(Column(name, kind, meaning) for name, kind, meaning in lines)


_KEYS: Final = """
topic              string   null when the send was not recorded
producer_group     string   null when the send was not recorded
consumer_group     string   null in rows about sends
msg_type           int      ordinal of MessageType; null when the send was not recorded
"""

EVENTS: Final = Table(
    "events",
    "event_ms",
    _columns(
        """
broker             string   broker of the trace message
queue_id           int      queue of the trace message
queue_offset       bigint   queue offset of the trace message
record_index       int      index of the record in its trace message, from 0
stored_ms          bigint   store time of the trace message, by the broker's clock
kind               string   Pub, SubBefore, SubAfter, EndTransaction, Recall or Broken
event_ms           bigint   timestamp_ms, or stored_ms without a plausible client time
region_id          string   of the client
group_name         string   the producer's group, or the consumer's
topic              string   of the message
request_id         string   shared by the SubBefore and SubAfter of one attempt
msg_id             string   of the message; all ids of a batch, joined by commas
tags               string   of the message
keys               string   of the message, joined by blanks
store_host         string   broker that received the message
offset_msg_id      string   the broker's id of the message
client_host        string   of the producer
transaction_id     string   of a half message
transaction_state  string   COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOW
timestamp_ms       bigint   as written by the client
body_bytes         bigint   of the message
cost_ms            bigint   of the send, or of the listener
msg_type           bigint   ordinal of MessageType
retry_times        bigint   0 at the first attempt
context_code       bigint   ordinal of ConsumeReturnType
success            boolean  whether the send, the listener or the recall succeeded
from_transaction_check boolean whether a transaction check caused the decision
raw                string   text of a broken record, truncated
"""
    ),
)

MINUTE: Final = Table(
    "minute",
    "minute_ms",
    _columns(
        """
minute_ms          bigint   first millisecond of the minute
"""
        + _KEYS
        + """
sends              bigint   attempts to send a message
send_failures      bigint   failed attempts to send
bytes              bigint   of the bodies sent
attempts           bigint   listener calls that started in the minute
successes          bigint   attempts with a recorded success
failures           bigint   attempts with a recorded failure
unfinished         bigint   attempts without a recorded end
retries            bigint   attempts after the first attempt
dead_letters       bigint   failures that made the message a dead letter
deliveries         bigint   first attempts of a message in the group
consumed           bigint   first successes of a message in the group
success_rate       double   successes / (successes + failures), 0 to 1; null without attempts
"""
        + "".join(
            f"{measure}_{level} double of the minute, exact, in ms\n"
            for measure in MEASURES
            for level in (*LEVELS, "max")
        )
    ),
)

LATENCY: Final = Table(
    "latency",
    "minute_ms",
    _columns(
        """
minute_ms          bigint   first millisecond of the minute
"""
        + _KEYS
        + """
measure            string   send_cost, latency or end_to_end
bucket             int      see trace.latency
count              bigint   values in the bucket
"""
    ),
)

EDGES: Final = Table(
    "edges",
    "hour_ms",
    _columns(
        """
hour_ms            bigint   first millisecond of the hour
producer_group     string   null when the send was not recorded
topic              string   null when the send was not recorded
consumer_group     string   null: the edge from producer to topic; else from topic to group
messages           bigint   messages sent with success; or first attempts of a message in the group
bytes              bigint   of the bodies sent; 0 on edges to a group
attempts           bigint   attempts to send; or listener calls
failures           bigint   failed attempts
dead_letters       bigint   0 on edges from a producer
untraced           bigint   messages of the hour in UNTRACED; 0 from a producer
first_ms           bigint   first time in the hour
last_ms            bigint   last time in the hour
"""
    ),
)

SLOW: Final = Table(
    "slow",
    "at_ms",
    _columns(
        """
at_ms              bigint   start of the group's first attempt; store time when untraced
reason             string   slow or untraced
"""
        + _KEYS
        + """
msg_id             string   of the message
tags               string   as in UNTRACED; null when slow
stored_ms          bigint   store time of the message
start_ms           bigint   of the group's first attempt; null when untraced
latency_ms         bigint   from stored to start_ms; null when untraced
end_to_end_ms      bigint   from the producer's call to the group's first success; null without
duration_ms        bigint   of the group's first attempt; null when its end was not recorded
attempts           bigint   the group's attempts so far
success            boolean  of the group's first attempt; null when its end was not recorded
"""
    ),
)

UNTRACED: Final = Table(
    "untraced",
    "minute_ms",
    _columns(
        """
minute_ms          bigint   first millisecond of the minute of the store times
"""
        + _KEYS
        + """
tags               string   of the messages; "" without tags; null when unknown, as in batches
messages           bigint   stored messages to consume, without a recorded attempt of the group
first_ms           bigint   first store time in the minute
last_ms            bigint   last store time in the minute
"""
    ),
)

#: What the cluster says about the groups: one file, the newest of `subscriptions/run=…`. A group
#: has one row per topic and period with the same filter. Without a row nothing is known.
SUBSCRIPTIONS: Final = Table(
    "subscriptions",
    "since_ms",
    _columns(
        """
topic              string   of the subscription
consumer_group     string   of the subscription
since_ms           bigint   begin of the period; 0 in the first row of the topic and group
until_ms           bigint   end of the period, exclusive; null in the newest row
expression_type    string   TAG or SQL92; null when the filter is unknown
expression         string   of the filter; null when the filter is unknown
accepted_tags      array<string> of a TAG filter; null when all tags pass, or for SQL92
consumed_until_ms  bigint   committed offsets lie behind all messages stored before; null if unknown
asked_ms           bigint   time of the answer of the cluster
"""
    ),
)

#: Derived rows between events and tables, for the jobs only. The newest run with rows of a message
#: in an hour has all rows of the message in this hour. A send has a null start; a row of the kind
#: `none` says that the message has no rows in the hour any more.
FACTS: Final = Table(
    "facts",
    "hour_ms",
    _columns(
        """
fact               string   send, attempt or none
start_ms           bigint   of the attempt, as recorded
"""
        + _KEYS
        + """
msg_id             string   of the message
sent_ms            bigint   of the send, or of the first send of the message
stored_ms          bigint   store time of the message; on its first successful send, and on attempts
messages           bigint   sent at once; 0 for the further messages of a batch
bytes              bigint   of the body
cost_ms            bigint   of the send
success            boolean  null when the end of an attempt was not recorded
awaited_groups     array<string> groups with attempts; null unless the message is to be consumed
tags               string   with awaited_groups, as in UNTRACED
retry_times        bigint   null when the start was not recorded
duration_ms        bigint   of the listener call
attempt_index      bigint   in causal order, from 0
attempts           bigint   of the group on the message
latency_ms         bigint   of the first attempt
end_to_end_ms      bigint   of the first success
group_end_to_end_ms bigint  the same, on the first attempt
is_first_success   boolean  whether the attempt is the first success of the group
is_dead_letter     boolean  whether the attempt made the message a dead letter
hour_ms            bigint   first millisecond of the hour, of the send and of its store time
"""
    ),
)

#: The groups that attempted to consume a topic, per hour; for the jobs only.
CONSUMERS: Final = Table(
    "consumers",
    "start_ms",
    _columns(
        """
topic              string   of the messages
consumer_group     string   of the attempts
start_ms           bigint   of the first attempt in the hour
"""
    ),
)

TABLES: Final = {table.name: table for table in (EVENTS, MINUTE, LATENCY, EDGES, SLOW, UNTRACED)}
