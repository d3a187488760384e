"""/clusters/<cluster>/alarms/"""

from django.urls import path

from console.services.alarms import receiver_views, rule_views, views

app_name = "alarms"

urlpatterns = [
    path("alarms/", views.AlarmsPage.as_view(), name="list"),
    path("alarms/firing/", views.FiringPart.as_view(), name="firing"),
    path("alarms/object/", views.ObjectPart.as_view(), name="object"),
    path("alarms/deliveries/", views.DeliveriesPage.as_view(), name="deliveries"),
    path("alarms/silences/", views.SilencesPage.as_view(), name="silences"),
    path("alarms/rules/", rule_views.RulesPage.as_view(), name="rules"),
    path("alarms/rules/create/", rule_views.RuleCreatePage.as_view(), name="rule-create"),
    path("alarms/rules/<int:number>/", rule_views.RulePage.as_view(), name="rule"),
    path("alarms/receivers/", receiver_views.ReceiversPage.as_view(), name="receivers"),
    path(
        "alarms/receivers/create/",
        receiver_views.ReceiverCreatePage.as_view(),
        name="receiver-create",
    ),
    path("alarms/receivers/<int:number>/", receiver_views.ReceiverPage.as_view(), name="receiver"),
    path("alarms/<int:number>/", views.AlarmPage.as_view(), name="detail"),
]
