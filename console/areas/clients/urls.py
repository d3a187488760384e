"""/clusters/<cluster>/clients/ and /clusters/<cluster>/producers/"""

from django.urls import path

from console.areas.clients import kicks, views

app_name = "clients"

urlpatterns = [
    path("clients/", views.ClientListPage.as_view(), name="list"),
    path("clients/<name:client>/", views.ConnectedPage.as_view(), name="detail"),
    path("clients/<name:client>/kick/", kicks.KickPage.as_view(), name="kick"),
    path("producers/", views.ProducerListPage.as_view(), name="producers"),
]
