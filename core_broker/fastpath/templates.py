"""Answers of the slow path as templates: constant bytes between the variable fields.

A template is the header of an answer behind the two lengths, cut at numbers and ids. The fast path
puts the fields between the parts, because both paths must answer equal bytes.
"""

from core_broker.config import BrokerConfig
from core_broker.processors.pull import answer_of
from core_broker.processors.put_answers import stored_answer
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.store import GetResult, GetStatus

#: Placeholder numbers while an answer is cut; the constant parts do not contain the numbers.
_OPAQUE = 1_111_111_111
_NUMBERS = (22_222_222, 3_333_333_333, 4_444_444_444, 5_555_555_555)
_IDS = "*"
_LENGTHS_BYTES = 8

Template = tuple[bytes, ...]


def cut(answer: RemotingCommand, *fields: object) -> Template:
    """Cut an answer at the opaque, then at `fields` in order."""
    answer.opaque = _OPAQUE
    rest = answer.encode_head()[_LENGTHS_BYTES:]
    parts = []
    for field in (_OPAQUE, *fields):
        part, _, rest = rest.partition(str(field).encode())
        parts.append(part)
    return (*parts, rest)


def success_template() -> Template:
    """SUCCESS without fields: opaque."""
    return cut(RemotingCommand.response())


def send_template(config: BrokerConfig) -> Template:
    """The answer to a stored send: opaque, message ids, queue id, queue offset."""
    queue_id, offset, *_ = _NUMBERS
    answer = stored_answer(config, _IDS, queue_id, offset)
    return cut(answer, _IDS, queue_id, offset)


def pull_templates() -> tuple[Template, ...]:
    """Answers to pulls: opaque, suggested broker, next, minimum and maximum offset.

    With messages, at the end of a queue, and when no message matched the filter.
    """
    suggested, after, low, high = _NUMBERS
    kinds = (
        (ResponseCode.SUCCESS, GetStatus.FOUND),
        (ResponseCode.PULL_NOT_FOUND, GetStatus.OFFSET_OVERFLOW_ONE),
        (ResponseCode.PULL_RETRY_IMMEDIATELY, GetStatus.NO_MATCHED_MESSAGE),
    )
    return tuple(
        cut(answer_of(code, GetResult(status, (), after, low, high), suggested), *_NUMBERS)
        for code, status in kinds
    )
