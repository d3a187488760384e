"""Filters of the job pages."""

from django import template

from console.services.jobs import presentation

register = template.Library()

register.filter("job_title", presentation.title)
register.filter("job_stage", presentation.stage_title)
register.filter("job_reason", presentation.reason)
register.filter("job_results", presentation.results)
