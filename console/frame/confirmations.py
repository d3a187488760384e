"""The second step of a deletion or a similar act: the question, the consequences, and the button.

The first step is a link with the parameter `ask`, or a button that changes nothing. The page comes
back with a `Confirmation` as `confirmation`, which "page.html" shows above the content
(`parts/confirmation.html`). Only the button of the confirmation acts.
"""

from dataclasses import dataclass
from typing import Any, Final

#: Parameter of a page's address: the act that the page confirms.
ASK: Final = "ask"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A question about an act. `name` and `value` are those of the button in the posted form."""

    question: Any
    button: Any
    name: str
    value: str = "1"
    consequences: tuple[Any, ...] = ()
    icon: str = "trash"
