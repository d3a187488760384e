"""/clusters/<cluster>/groups/…"""

from django.urls import path

from console.areas.groups import views
from console.areas.groups.resource import GROUP
from console.resources.label_pages import label_page_urls
from console.resources.pages import page_urls

app_name = "groups"

urlpatterns = [
    path("groups/", views.GroupListPage.as_view(), name="list"),
    path("groups/<name:group>/", views.GroupPage.as_view(), name="detail"),
    path("groups/<name:group>/queues/", views.QueuesPage.as_view(), name="queues"),
    path("groups/<name:group>/consumers/", views.ConsumersPage.as_view(), name="consumers"),
    path(
        "groups/<name:group>/configuration/",
        views.ConfigurationPage.as_view(),
        name="configuration",
    ),
    path("groups/<name:group>/clients/<name:client>/", views.ClientPage.as_view(), name="client"),
    *page_urls(GROUP),
    *label_page_urls(GROUP),
]
