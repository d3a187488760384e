"""/api/v1/clusters/<cluster>/dlq…"""

from django.urls import path

from console.areas.deadletters import api, direct, replay_api

urlpatterns = [
    path("dlq", api.DeadLetterGroupList.as_view(), name="api-dlq"),
    path("dlq/<name:group>", api.DeadLetterGroupOne.as_view(), name="api-dlq-group"),
    path("dlq/<name:group>/messages", api.DeadLetterList.as_view(), name="api-dlq-messages"),
    path("dlq/<name:group>/export", api.DeadLetterExport.as_view(), name="api-dlq-export"),
    path("dlq/<name:group>/resend", api.DeadLetterResend.as_view(), name="api-dlq-resend"),
    path("dlq/<name:group>/discard", api.DeadLetterDiscard.as_view(), name="api-dlq-discard"),
    path("dlq/<name:group>/restore", api.DeadLetterRestore.as_view(), name="api-dlq-restore"),
    path(
        "dlq/<name:group>/messages/<name:offset_msg_id>/try",
        direct.DeadLetterTry.as_view(),
        name="api-dlq-try",
    ),
    path("dlq/<name:group>/replays", replay_api.ReplayList.as_view(), name="api-dlq-replays"),
    path(
        "dlq/<name:group>/replays/<int:number>",
        replay_api.ReplayOne.as_view(),
        name="api-dlq-replay",
    ),
    path(
        "dlq/<name:group>/replays/<int:number>/outcomes",
        replay_api.ReplayOutcomes.as_view(),
        name="api-dlq-replay-outcomes",
    ),
]
