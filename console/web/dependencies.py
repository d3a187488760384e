"""Optional services of the console, and the functions that need them."""

from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _
from redis import Redis, RedisError

from console.project_files import COMMAND

REDIS_TIMEOUT_S = 0.5


def redis_problem() -> str | None:
    """Return why Redis is unavailable; None when Redis answers.

    Background jobs and job progress need Redis; live rates and all other functions work without
    Redis.
    """
    if not settings.REDIS_URL:
        return _(
            "No Redis is configured. Set REDIS_URL, or start everything with “{command} up”."
        ).format(command=COMMAND)
    try:
        with Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=REDIS_TIMEOUT_S,
            socket_connect_timeout=REDIS_TIMEOUT_S,
        ) as redis:
            redis.ping()
    except RedisError as problem:
        where = urlsplit(settings.REDIS_URL)
        address = f"{where.hostname}:{where.port or 6379}" if where.hostname else where.path
        return _("Redis at %(address)s does not answer: %(problem)s. Check REDIS_URL.") % {
            "address": address,
            "problem": problem,
        }
    return None
