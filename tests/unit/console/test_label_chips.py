"""Chips of labels in the rows of a list: same HTML as Django's template tags give."""

import pytest
from django.template import Context, Template
from django.test import RequestFactory

from console.resources.label_filter import Search
from console.resources.templatetags.labels import ROW_CHIPS_MAX, label_row, row_chips

HOSTILE = "\"><script>alert('x')</script>&amp;{{ csrf_token }}"
REFERENCE = Template(
    '<span class="label-chips">{% for key, value, search in shown %}<a class="label-chip" '
    'href="{% querystring q=search page=None %}" title="{{ key }}={{ value }}">{{ key }}='
    '{{ value }}</a>{% endfor %}{% if rest %}<span class="label-chip more-labels" '
    'title="{{ rest }}">+{{ count }}</span>{% endif %}</span>'
)
LABELS = {
    "one": {"team": "payments"},
    "hostile": {"note": HOSTILE, "team": "two words", "x": '" q=&page=2 #'},
    "many": {f"k{number}": f"{number}{HOSTILE}" for number in range(ROW_CHIPS_MAX + 2)},
    "bare": {},
}


@pytest.mark.parametrize("search", ["", "orders", "orders label:team=payments", HOSTILE])
@pytest.mark.parametrize(
    "address", ["/", "/?page=7", "/?q=a&page=2&columns=name&columns=lag", "/?q=a&q=b&x=%22%3E%26"]
)
def test_the_chips_of_a_row_are_escaped_as_by_templates(address: str, search: str) -> None:
    request = RequestFactory().get(address)
    rows = row_chips(Context({"request": request}), LABELS, search)
    for name in ("one", "hostile", "many"):
        labels = [(k, v, Search(search).added(k, v)) for k, v in LABELS[name].items()]
        rest = [f"{k}={v}" for k, v, _search in labels[ROW_CHIPS_MAX:]]
        context = Context(
            {"shown": labels[:ROW_CHIPS_MAX], "rest": ", ".join(rest), "count": len(rest)}
        )
        context.request = request  # type: ignore[attr-defined]
        shown = Template("{% load labels %}{% label_row rows name %}").render(
            Context({"rows": rows, "name": name})
        )
        assert shown == REFERENCE.render(context)
        assert "<script" not in shown
    assert label_row(rows, "bare") == label_row(rows, "unknown") == ""
    assert request.get_full_path() == address
