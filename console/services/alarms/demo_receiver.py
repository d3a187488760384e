"""The stored receiver of `manage.py demo`; `console.launcher.demo_receiver` accepts the notices."""

from typing import Final

from console.services.alarms.models import Receiver, ReceiverKind
from console.services.alarms.receivers import Draft, save

NAME: Final = "Demo receiver"


def set_demo_receiver(url: str) -> bool:
    """Store the receiver with the URL of this start; without a URL, switch off a stored one.

    Return whether the receiver is on: the next start without the demo must switch it off.
    """
    row = Receiver.objects.filter(name=NAME).first()
    if url:
        language = row.language if row else "en"
        draft = Draft(
            name=NAME,
            kind=ReceiverKind.WEBHOOK,
            enabled=True,
            all_rules=True,
            language=language,
            recipients="",
            url=url,
            secret="",
        )
        save(row, draft, "demo")
    elif row is not None:
        Receiver.objects.filter(pk=row.pk).update(enabled=False)
    return bool(url)
