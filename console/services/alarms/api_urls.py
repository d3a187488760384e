"""/api/v1/clusters/<cluster>/alarms, alarm-rules, alarm-receivers, alarm-silences"""

from django.urls import path

from console.services.alarms import api, receivers_api, rules_api

urlpatterns = [
    path("alarms", api.AlarmList.as_view(), name="api-alarms"),
    path("alarms/<int:number>", api.AlarmOne.as_view(), name="api-alarm"),
    path(
        "alarms/<int:number>/acknowledgement",
        api.AlarmAcknowledgement.as_view(),
        name="api-alarm-acknowledgement",
    ),
    path("alarm-rules", rules_api.AlarmRuleList.as_view(), name="api-alarm-rules"),
    path(
        "alarm-rules:preview", rules_api.AlarmRulePreview.as_view(), name="api-alarm-rules-preview"
    ),
    path("alarm-rules/<int:number>", rules_api.AlarmRuleOne.as_view(), name="api-alarm-rule"),
    path("alarm-receivers", receivers_api.AlarmReceiverList.as_view(), name="api-alarm-receivers"),
    path(
        "alarm-receivers/<int:number>",
        receivers_api.AlarmReceiverOne.as_view(),
        name="api-alarm-receiver",
    ),
    path(
        "alarm-receivers/<int:number>/test",
        receivers_api.AlarmReceiverTest.as_view(),
        name="api-alarm-receiver-test",
    ),
    path("alarm-silences", api.AlarmSilenceList.as_view(), name="api-alarm-silences"),
    path("alarm-silences/<int:number>", api.AlarmSilenceOne.as_view(), name="api-alarm-silence"),
]
