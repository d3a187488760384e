"""/api/v1/clusters/<cluster>/messages…"""

from django.urls import path

from console.areas.messages import api, direct, export_page, filter_api, send_api, tail_api

urlpatterns = [
    path("messages", send_api.Messages.as_view(), name="api-messages"),
    path("messages/exports", export_page.MessageExports.as_view(), name="api-messages-exports"),
    path("topics/<name:topic>/tail", tail_api.TopicTail.as_view(), name="api-topic-tail"),
    path("messages/find", api.FoundMessageList.as_view(), name="api-messages-find"),
    path("messages:test-filter", filter_api.FilterTest.as_view(), name="api-messages-test-filter"),
    path("messages/<name:offset_msg_id>", api.MessageOne.as_view(), name="api-message"),
    path(
        "messages/<name:offset_msg_id>/delivery",
        direct.MessageDelivery.as_view(),
        name="api-message-delivery",
    ),
    path("messages/<name:offset_msg_id>/body", api.MessageBody.as_view(), name="api-message-body"),
]
