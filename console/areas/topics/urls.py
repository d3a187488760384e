"""/clusters/<cluster>/topics/…"""

from django.urls import path

from console.areas.topics import views
from console.areas.topics.resource import TOPIC
from console.resources.pages import page_urls

app_name = "topics"

urlpatterns = [
    path("topics/", views.TopicListPage.as_view(), name="list"),
    path("topics/<name:topic>/", views.TopicPage.as_view(), name="detail"),
    *page_urls(TOPIC),
]
