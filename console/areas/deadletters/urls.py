"""/clusters/<cluster>/dlq/…"""

from django.urls import path

from console.areas.deadletters import direct, replaying, sending, views

app_name = "deadletters"
urlpatterns = [
    path("dlq/", views.GroupListPage.as_view(), name="list"),
    path("dlq/<str:group>/", views.DeadLetterListPage.as_view(), name="group"),
    path("dlq/<str:group>/resend/", sending.ResendPage.as_view(), name="resend"),
    path("dlq/<str:group>/discard/", sending.DiscardPage.as_view(), name="discard"),
    path("dlq/<str:group>/export/", views.ExportView.as_view(), name="export"),
    path("dlq/<str:group>/replay/", replaying.ReplayPage.as_view(), name="replay"),
    path(
        "dlq/<str:group>/replay/<int:number>/",
        replaying.OutcomesPage.as_view(),
        name="replay_outcomes",
    ),
    path("dlq/<str:group>/<str:offset_msg_id>/", views.DeadLetterPage.as_view(), name="letter"),
    path("dlq/<str:group>/<str:offset_msg_id>/try/", direct.TryPage.as_view(), name="try"),
    path("dlq/<str:group>/<str:offset_msg_id>/edit/", sending.EditPage.as_view(), name="edit"),
]
