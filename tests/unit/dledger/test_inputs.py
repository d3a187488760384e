"""The queue in front of a member."""

from core_broker.dledger.inputs import INPUTS_BYTES_MAX, INPUTS_MAX, Inputs, Step


class Taker:
    """Executes steps, and keeps their names."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.inputs = Inputs(lambda step: step())

    def named(self, name: str, *, holds: bool = False) -> Step:
        def step() -> None:
            self.taken.append(name)
            if holds:
                self.inputs.hold()

        return step


def test_inputs_wait_for_the_effects_of_an_earlier_one() -> None:
    taker = Taker()
    taker.inputs.put(taker.named("first", holds=True))
    for name in ("second", "third"):
        taker.inputs.put(taker.named(name, holds=name == "second"))
    assert taker.taken == ["first"]
    taker.inputs.resume()
    assert taker.taken == ["first", "second"]
    taker.inputs.resume()
    assert taker.taken == ["first", "second", "third"]


def test_the_queue_is_bounded_in_number() -> None:
    taker = Taker()
    taker.inputs.hold()
    for _ in range(INPUTS_MAX + 2):
        taker.inputs.put(taker.named("x"))
    assert taker.inputs.dropped == 2
    taker.inputs.resume()
    assert len(taker.taken) == INPUTS_MAX


def test_answers_are_never_dropped() -> None:
    taker = Taker()
    taker.inputs.hold()
    for _ in range(INPUTS_MAX):
        taker.inputs.put(taker.named("request"))
    taker.inputs.put_answer(taker.named("answer"))
    assert taker.inputs.dropped == 0
    taker.inputs.put(taker.named("request"))
    assert taker.inputs.dropped == 1
    taker.inputs.resume()
    assert taker.taken == ["request"] * INPUTS_MAX + ["answer"]


def test_the_queue_is_bounded_in_bytes() -> None:
    taker = Taker()
    taker.inputs.hold()
    size = INPUTS_BYTES_MAX // 4
    for _ in range(5):
        taker.inputs.put(taker.named("large"), size)
    taker.inputs.put(taker.named("small"))
    assert taker.inputs.dropped == 1
    taker.inputs.resume()
    assert taker.taken == ["large"] * 4 + ["small"]
    taker.inputs.hold()
    for _ in range(4):
        taker.inputs.put(taker.named("large"), size)
    assert taker.inputs.dropped == 1, "the bytes of inputs that were taken count no longer"
