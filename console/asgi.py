"""The ASGI application: static files, admission, pages, REST resources, WebSockets, shutdown."""

import gc
import os
from importlib import import_module
from typing import Any, Final

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
_django = get_asgi_application()  # loads the apps; modules with models are imported below

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter  # noqa: E402
from django.conf import settings  # noqa: E402

from console.areas.messages.tails import stop_tails  # noqa: E402
from console.gateway import gateway  # noqa: E402
from console.web.admission import Admission  # noqa: E402
from console.web.live.routing import feed_router  # noqa: E402
from console.web.live.sampler import stop_samplers  # noqa: E402
from console.web.proxies import Proxies  # noqa: E402
from console.web.security import HostOfProbes, SameOrigin  # noqa: E402
from console.web.static_files import StaticFilesApp  # noqa: E402
from console.web.sub_path import SubPath  # noqa: E402
from console.web.wal_index import WalIndex  # noqa: E402

#: Allocations between two collections of the garbage collector's youngest generation. The rows of
#: a list and each new inventory are tens of thousands of objects without reference cycles.
GC_THRESHOLD: Final = 50_000


async def lifespan(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """At shutdown, stop samplers and message tails and close the connections to clusters."""
    wal_index = WalIndex()
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            _tune_garbage_collection()
            wal_index.start()
        if message["type"] == "lifespan.shutdown":
            await stop_samplers()
            await stop_tails()
            gateway.close()
            wal_index.close()
            await send({"type": "lifespan.shutdown.complete"})
            return
        await send({"type": "lifespan.startup.complete"})


def _tune_garbage_collection() -> None:
    """Exclude the loaded modules from garbage collection, and collect rarely: with 5,000 topics
    and groups, a full collection takes 25 to 90 ms and stops all requests, 100 ms more with the
    modules. With CPython's thresholds, each second of requests had a full collection."""
    import_module(settings.ROOT_URLCONF)
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)


_router = ProtocolTypeRouter(
    {
        "http": HostOfProbes(_django),
        "websocket": SameOrigin(AuthMiddlewareStack(feed_router())),
        "lifespan": lifespan,
    }
)
application = SubPath(Proxies(StaticFilesApp(Admission(_router))), settings.PREFIX)
