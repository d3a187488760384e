"""/api/v1/clusters/<cluster>/delayed-messages, …/half-messages, …/discarded-half-messages"""

from django.urls import path

from console.areas.pending import api

urlpatterns = [
    path("delayed-messages", api.DelayedMessageList.as_view(), name="api-delayed-messages"),
    path("half-messages", api.HalfMessageList.as_view(), name="api-half-messages"),
    path(
        "discarded-half-messages",
        api.DiscardedHalfMessageList.as_view(),
        name="api-discarded-half-messages",
    ),
    path(
        "discarded-half-messages/checks",
        api.HalfMessageChecks.as_view(),
        name="api-half-message-checks",
    ),
]
