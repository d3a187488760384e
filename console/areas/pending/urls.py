"""/clusters/<cluster>/delayed/ and …/half-messages/"""

from django.urls import path

from console.areas.pending import views

app_name = "pending"

urlpatterns = [
    path("delayed/", views.DelayedListPage.as_view(), name="delayed"),
    path("half-messages/", views.HalfListPage.as_view(), name="half"),
    path("half-messages/discarded/", views.DiscardedListPage.as_view(), name="discarded"),
    path("half-messages/check/", views.CheckPage.as_view(), name="check"),
]
