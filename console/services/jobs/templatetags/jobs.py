"""Filters and tags of the job pages."""

from datetime import UTC, datetime

from django import template
from django.utils import timezone

from console.services.jobs import presentation
from console.services.jobs.states import State
from console.services.jobs.timeline import Timeline

register = template.Library()

register.filter("job_title", presentation.title)
register.filter("job_stage", presentation.stage_title)
register.filter("job_reason", presentation.reason)
register.filter("job_results", presentation.results)
register.filter("job_state", lambda value: State(value).label)


@register.simple_tag
def clock(timeline: Timeline, after_ms: int) -> str:
    """Time of day of a tick, with the date where the axis has several days."""
    begin, end, at = (
        timezone.localtime(datetime.fromtimestamp(ms / 1000, UTC))
        for ms in (timeline.begin_ms, timeline.end_ms, timeline.begin_ms + after_ms)
    )
    return f"{at:%H:%M:%S}" if begin.date() == end.date() else f"{at:%m-%d %H:%M}"
