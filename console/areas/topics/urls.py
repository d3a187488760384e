"""/clusters/<cluster>/topics/…"""

from django.urls import path

from console.areas.topics import views
from console.areas.topics.resource import TOPIC
from console.resources.label_pages import label_page_urls
from console.resources.pages import page_urls

app_name = "topics"

urlpatterns = [
    path("topics/", views.TopicListPage.as_view(), name="list"),
    path("topics/<name:topic>/", views.TopicPage.as_view(), name="detail"),
    path("topics/<name:topic>/consumers/", views.ConsumersPage.as_view(), name="consumers"),
    path("topics/<name:topic>/queues/", views.QueuesPage.as_view(), name="queues"),
    path(
        "topics/<name:topic>/configuration/",
        views.ConfigurationPage.as_view(),
        name="configuration",
    ),
    path("topics/<name:topic>/permissions/", views.PermissionsPage.as_view(), name="permissions"),
    *page_urls(TOPIC),
    *label_page_urls(TOPIC),
]
