"""The decision point of a server: every request of every path passes the gate or is refused.

The gate has the current rules of ACL 1.0, of ACL 2.0, or of both, and is closed without rules. With
both, 1.0 and 2.0 decide, and a refusal of 2.0 is answered first. Compatible with RocketMQ
5.3.2's NettyRemotingAbstract, which runs the hooks of 1.0 and then the pipeline of 2.0.

Rules are replaced by one assignment, and what the fast path may take is forgotten with the old
rules: no decision mixes rules of two generations. Only the event loop's thread uses a gate.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from core_broker.auth.admissions import Admissions
from core_broker.auth.contracts import Identity, Refusal, Request, Rules
from core_broker.remoting.codes import ResponseCode

NO_RULES = "access control is on, but no access rules are loaded; see the server's log"


class Observer(Protocol):
    """Is notified of every decision about a request of the gate."""

    def before(self, address: str, request: Request) -> None:
        """Called before the rules; raises Refusal to refuse the request."""

    def admitted(self, address: str, request: Request, identity: Identity) -> None:
        """Called after the rules admitted the request; raises Refusal to refuse the request."""

    def refused(self, address: str, request: Request, refusal: Refusal) -> None:
        """Called once for each refused request."""


class Gate:
    """Admits requests by the current rules. `observers` count, audit and restrict further.

    `admissions` remembers admitted requests for the fast path; None keeps all requests on the slow
    path.
    """

    def __init__(
        self, observers: tuple[Observer, ...] = (), admissions: Admissions | None = None
    ) -> None:
        self.admissions = admissions
        self._observers = observers
        self._rules: tuple[Rules, ...] = ()
        self._acl1: Rules | None = None
        self._acl2: Rules | None = None

    @property
    def generations(self) -> tuple[int, ...]:
        """The generations of the rules in force, 1.0 before 2.0."""
        return tuple(rules.generation for rules in self._rules)

    def use_acl1(self, rules: Rules) -> None:
        """Replace the rules of ACL 1.0; requests from now on are decided by the new rules."""
        self._acl1 = rules
        self._swap()

    def use_acl2(self, rules: Rules) -> None:
        """Replace the rules of ACL 2.0; requests from now on are decided by the new rules."""
        self._acl2 = rules
        self._swap()

    def _swap(self) -> None:
        self._rules = tuple(each for each in (self._acl1, self._acl2) if each is not None)
        if self.admissions is not None:
            self.admissions.forget()

    def admit(self, address: str, request: Request) -> Identity:
        """Return the sender of a request that may be handled; raises Refusal."""
        rules = self._rules
        try:
            for observer in self._observers:
                observer.before(address, request)
            identity = _decide([each.admit for each in rules], address, request)
            for observer in self._observers:
                observer.admitted(address, request, identity)
        except Refusal as refusal:
            if self.admissions is not None:
                self.admissions.refused(address, refusal)
            for observer in self._observers:
                observer.refused(address, request, refusal)
            raise
        # Two generations together decide on the slow path alone.
        if self.admissions is not None and len(rules) == 1 and rules is self._rules:
            self.admissions.note(address, request, identity)
        return identity

    def check_stored(self, address: str, request: Request, topic: str) -> None:
        """Check an admitted request about one stored message of the topic; raises Refusal.

        Without the check, a request with the position of any message could read the message.
        """
        try:
            for rules in reversed(self._rules):
                rules.check_stored(address, request, topic)
        except Refusal as refusal:
            for observer in self._observers:
                observer.refused(address, request, refusal)
            raise

    def identify(self, address: str, request: Request) -> Identity:
        """Return the sender of an admitted request, for a handler that needs the account.

        Raises Refusal. Observers are not notified.
        """
        return _decide([each.identify for each in self._rules], address, request)


def _decide(
    questions: Sequence[Callable[[str, Request], Identity]], address: str, request: Request
) -> Identity:
    """Ask all rules; returns the last identity, raises the last refusal."""
    identity, refused = None, None
    for ask in questions:
        try:
            identity = ask(address, request)
        except Refusal as refusal:
            refused = refusal
    if refused is not None:
        raise refused
    if identity is None:
        raise Refusal(ResponseCode.SYSTEM_ERROR, NO_RULES, "no-rules")
    return identity
