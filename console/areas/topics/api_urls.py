"""/api/v1/clusters/<cluster>/topics/…"""

from django.urls import path

from console.areas.topics import api
from console.areas.topics.resource import TOPIC
from console.resources.api import api_urls
from console.resources.labels_api import label_urls

urlpatterns = [
    path("topics", api.TopicList.as_view(), name="api-topics"),
    path("topics/<name:topic>", api.TopicOne.as_view(), name="api-topic"),
    path("topics:update", api.TopicBulkUpdate.as_view(), name="api-topics-update"),
    *api_urls(TOPIC),
    *label_urls(TOPIC),
]
