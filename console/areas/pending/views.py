"""Pages of delayed messages, half messages and discarded half messages."""

from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.areas.messages.views import known_topics
from console.areas.pending import listing
from console.areas.pending.discarded import CHECK_ACTION, Discarded, check_again, discarded_page
from console.areas.pending.forms import DelayedForm
from console.frame.pages import ClusterPage
from console.frame.tables import TableQuery
from console.gateway.messages.paging import CursorError
from console.gateway.pending.delayed import delayed_messages
from console.gateway.pending.half import RESUMED_MAX, half_messages

PAGE_MESSAGES = 50
#: Maximum number of topics offered as completions.
TOPICS_OFFERED_MAX = 1_000


class DelayedListPage(ClusterPage):
    """Undelivered delayed messages, earliest due time first, with the levels as chips."""

    template = "pending/delayed.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        form = DelayedForm(request.GET)
        is_valid = form.is_valid()
        wanted = form.filter
        cursor = request.GET.get("cursor", "")
        try:
            answer = self.cluster.ask(delayed_messages, wanted, cursor or None, PAGE_MESSAGES)
        except CursorError:
            cursor = ""
            answer = self.cluster.ask(delayed_messages, wanted, None, PAGE_MESSAGES)
        query = {name: request.GET[name] for name in form.fields if request.GET.get(name)}
        following = answer.value.next_cursor
        return self.show(
            title=_("Delayed messages"),
            status=200 if is_valid else 400,
            form=form,
            answer=answer,
            rows=answer.value.rows,
            topics=[row.name for row in known_topics(request, self.cluster)][:TOPICS_OFFERED_MAX],
            no_cancel=listing.NO_CANCEL,
            is_filtered=bool(query),
            chosen_level=wanted.level,
            is_first_page=not cursor,
            first_query=urlencode(query),
            next_query=urlencode({**query, "cursor": following}) if following else "",
        )


class HalfListPage(ClusterPage):
    """Half messages of transactions that have not ended."""

    template = "pending/half.html"
    part = "pending/half_rows.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        answer = self.cluster.ask(half_messages)
        query = TableQuery.read(request.GET, listing.HALF_COLUMNS, default="born_ms")
        return self.show(
            title=_("Half messages"),
            answer=answer,
            page=query.page(listing.passing(answer.value.rows, query.search)),
        )


class DiscardedListPage(ClusterPage):
    """Half messages that brokers discarded, with check boxes for new checks."""

    template = "pending/discarded.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        cursor = request.GET.get("cursor", "")
        try:
            answer = discarded_page(self.cluster, cursor or None, PAGE_MESSAGES)
        except CursorError:
            cursor = ""
            answer = discarded_page(self.cluster, None, PAGE_MESSAGES)
        following = answer.value.next_cursor if answer else None
        return self.show(
            title=_("Discarded half messages"),
            answer=answer,
            rows=[Discarded(ref) for ref in answer.value.rows] if answer else [],
            again={half.name for half in self.cluster.ask(half_messages).value.rows},
            is_first_page=not cursor,
            first_query="",
            next_query=urlencode({"cursor": following}) if following else "",
        )


class CheckPage(ClusterPage):
    """Resumes the checks of the selected discarded half messages."""

    actions = {"post": CHECK_ACTION}

    def get(self, request: HttpRequest, cluster: str) -> HttpResponseBase:
        """A GET of the form's URL redirects to the list and changes nothing."""
        return redirect("pending:discarded", self.cluster.name)

    def post(self, request: HttpRequest, cluster: str) -> HttpResponseBase:
        ids = request.POST.getlist("id")
        if not 0 < len(ids) <= RESUMED_MAX:
            messages.error(request, _("Select 1 to {most} messages.").format(most=RESUMED_MAX))
            return redirect("pending:discarded", self.cluster.name)
        outcomes = check_again(request, self.cluster, ids)
        failed = [each for each in outcomes if each.error]
        if done := len(outcomes) - len(failed):
            text = ngettext(
                "%(n)d half message is checked again, from 0 checks.",
                "%(n)d half messages are checked again, from 0 checks.",
                done,
            )
            messages.success(request, text % {"n": done})
        for each in failed:
            messages.error(request, f"{each.id}: {each.error}")
        return redirect("pending:discarded", self.cluster.name)
