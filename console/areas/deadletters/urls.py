"""/clusters/<cluster>/dlq/…"""

from django.urls import path

from console.areas.deadletters import direct, replaying, sending, views

app_name = "deadletters"
urlpatterns = [
    path("dlq/", views.GroupListPage.as_view(), name="list"),
    path("dlq/<name:group>/", views.DeadLetterListPage.as_view(), name="group"),
    path("dlq/<name:group>/resend/", sending.ResendPage.as_view(), name="resend"),
    path("dlq/<name:group>/discard/", sending.DiscardPage.as_view(), name="discard"),
    path("dlq/<name:group>/export/", views.ExportView.as_view(), name="export"),
    path("dlq/<name:group>/replay/", replaying.ReplayPage.as_view(), name="replay"),
    path(
        "dlq/<name:group>/replay/<int:number>/",
        replaying.OutcomesPage.as_view(),
        name="replay_outcomes",
    ),
    path("dlq/<name:group>/<name:offset_msg_id>/", views.DeadLetterPage.as_view(), name="letter"),
    path("dlq/<name:group>/<name:offset_msg_id>/try/", direct.TryPage.as_view(), name="try"),
    path("dlq/<name:group>/<name:offset_msg_id>/edit/", sending.EditPage.as_view(), name="edit"),
]
