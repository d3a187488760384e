"""What a rule would mask: in a sample body, and in the newest messages of a topic."""

from dataclasses import dataclass
from typing import Final

from console.gateway import Cluster
from console.gateway.messages.browse import browse
from console.gateway.messages.masks import HIDDEN, MaskRule, masked, masked_text
from console.gateway.patterns import fits

MESSAGES: Final = 50
#: Maximum number of messages that the preview lists.
SHOWN_MAX: Final = 5
SAMPLE_CHARS_MAX: Final = 20_000
BODY_CHARS_SHOWN: Final = 600


@dataclass(frozen=True, slots=True)
class MaskedSample:
    """A message of the topic, after the rule."""

    msg_id: str
    offset_msg_id: str
    body: str


@dataclass(frozen=True, slots=True)
class Preview:
    """The sample after the rule, and the effect on the newest messages of a topic: how many were
    read, how many change, and of them with the body masked whole. `applies`: the rule's pattern
    fits the topic."""

    sample: str | None
    applies: bool
    read: int
    changed: int
    whole: int
    messages: tuple[MaskedSample, ...]


def preview(cluster: Cluster, rule: MaskRule, sample: str, topic: str) -> Preview:
    """Apply the rule alone. Messages come through the mask of the user, so that a preview shows
    nothing that the user may not see."""
    shown = None
    if sample:
        shown = masked_text(sample, (rule,)) if rule.kind in ("json", "regex", "body") else sample
        shown = HIDDEN if shown is None else shown
    applies = bool(topic) and fits(rule.topic, topic)
    refs = cluster.ask(browse, topic, None, None, None, MESSAGES).value.rows if applies else ()
    pairs = [(ref.message, masked(ref.message, (rule,))) for ref in refs]
    changed = [after for before, after in pairs if after is not before]
    whole = sum(
        after.body == HIDDEN.encode() and after.body != before.body for before, after in pairs
    )
    return Preview(
        shown,
        applies,
        len(pairs),
        len(changed),
        whole,
        tuple(
            MaskedSample(
                each.msg_id,
                each.offset_msg_id,
                each.decompressed_body().decode(errors="replace")[:BODY_CHARS_SHOWN],
            )
            for each in changed[:SHOWN_MAX]
        ),
    )
