"""/clusters/<cluster>/…"""

from __future__ import annotations

from django.urls import path

from console.clusters import views

app_name = "clusters"

urlpatterns = [
    path("", views.OverviewPage.as_view(), name="overview"),
    path("behind/", views.BehindPart.as_view(), name="behind"),
    path("brokers/", views.BrokersPage.as_view(), name="brokers"),
    path("brokers/<str:broker>/", views.BrokerPage.as_view(), name="broker"),
    path("name-servers/", views.NameServersPage.as_view(), name="name-servers"),
]
