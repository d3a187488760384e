"""Checks whether a history of a key-value register is linearizable (Wing and Gong, with memory).

Every operation took effect at one moment between its call and its return. Operations on different
keys are independent, so each key is checked alone. A search state is the set of operations that
have taken effect, and the value; no state is searched twice (Lowe's memory, as in porcupine).
"""

from dataclasses import dataclass

#: States of one search; a longer search counts as a failure, so that no test can pass undecided.
STATES_MAX = 200_000
#: Return of an operation whose caller got no answer.
NEVER = 1 << 60


@dataclass(slots=True)
class Operation:
    """One operation of a client. `called` and `returned` are distinct moments of one clock."""

    key: str
    #: "read", "write", or "swap": a write under the condition of an expected value.
    kind: str
    called: int
    #: Written value.
    value: str = ""
    #: Expected value of a swap.
    expected: str = ""
    returned: int = NEVER
    #: Value that a read returned; "True" or "False" for a swap; None without an answer.
    answer: str | None = None

    def effect(self, value: str) -> str | None:
        """Return the value after this operation; None when the answer contradicts `value`."""
        if self.kind == "read":
            return value if self.answer in (None, value) else None
        if self.kind == "write":
            return self.value
        is_swapped = value == self.expected
        if self.answer not in (None, str(is_swapped)):
            return None
        return self.value if is_swapped else value


def check_history(operations: list[Operation]) -> str | None:
    """Return None for a linearizable history, else the key's history as text.

    Operations without a return must have taken effect: the caller removes the others.
    """
    for key in sorted({each.key for each in operations}):
        history = sorted((each for each in operations if each.key == key), key=lambda o: o.called)
        if not _is_linearizable(history):
            return "\n".join([f"no order explains the history of {key}:", *map(str, history)])
    return None


def _is_linearizable(history: list[Operation]) -> bool:
    done = (1 << len(history)) - 1
    stack = [(0, "")]
    seen = {(0, "")}
    while stack:
        taken, value = stack.pop()
        if taken == done:
            return True
        if len(seen) > STATES_MAX:
            raise AssertionError(f"the search exceeds STATES_MAX, {STATES_MAX}")
        first_return = min(
            each.returned for number, each in enumerate(history) if not taken >> number & 1
        )
        for number, each in enumerate(history):
            if each.called > first_return:
                break
            if taken >> number & 1:
                continue
            after = each.effect(value)
            state = (taken | 1 << number, after or "")
            if after is not None and state not in seen:
                seen.add(state)
                stack.append(state)
    return False
