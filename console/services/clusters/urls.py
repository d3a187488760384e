"""/clusters/<cluster>/…"""

from django.urls import path

from console.services.clusters import configuration, views
from console.services.clusters.forgetting import ForgetPage
from console.services.clusters.name_server_keys import NameServerKeysPage
from console.services.clusters.read_only import ReadOnlyPage
from console.services.clusters.signing import CredentialsPage

app_name = "clusters"

urlpatterns = [
    path("", views.OverviewPage.as_view(), name="overview"),
    path("behind/", views.HighestLagPart.as_view(), name="behind"),
    path("brokers/", views.BrokersPage.as_view(), name="brokers"),
    path("brokers/<name:broker>/", views.BrokerPage.as_view(), name="broker"),
    path("brokers/<name:broker>/<int:number>/forget/", ForgetPage.as_view(), name="forget"),
    path("broker-settings/", configuration.SettingsPage.as_view(), name="settings"),
    path("broker-settings/<str:key>/", configuration.SettingPage.as_view(), name="setting"),
    path(
        "broker-settings/<str:name>/undo/<int:number>/",
        configuration.SettingUndoPage.as_view(),
        name="undo",
    ),
    path("credentials/", CredentialsPage.as_view(), name="credentials"),
    path("read-only/", ReadOnlyPage.as_view(), name="read-only"),
    path("name-servers/keys/", NameServerKeysPage.as_view(), name="name-server-keys"),
    path("name-servers/", views.NameServersPage.as_view(), name="name-servers"),
]
