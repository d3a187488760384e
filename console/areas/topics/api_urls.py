"""/api/v1/clusters/<cluster>/topics/…"""

from django.urls import path

from console.areas.topics import api, guarded

urlpatterns = [
    path("topics", api.TopicList.as_view(), name="api-topics"),
    path("topics/<str:topic>", api.TopicOne.as_view(), name="api-topic"),
    path("topics/<str:topic>/impact", api.TopicImpactNow.as_view(), name="api-topic-impact"),
    path(
        "topics/<str:name>/protection",
        guarded.TopicProtection.as_view(),
        name="api-topic-protection",
    ),
    path("topics:delete", guarded.TopicBulkDelete.as_view(), name="api-topics-delete"),
    path("topics:update", guarded.TopicBulkUpdate.as_view(), name="api-topics-update"),
]
