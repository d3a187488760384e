"""/api/v1/clusters/<cluster>/…"""

from django.urls import path

from console.services.clusters import api
from console.services.clusters.name_server_keys import NameServerKeys
from console.services.clusters.read_only import ReadOnlyResource
from console.services.clusters.settings_api import BrokerSettings
from console.services.clusters.signing import CredentialsResource

urlpatterns = [
    path("load", api.LoadNow.as_view(), name="api-load"),
    path("brokers", api.BrokerList.as_view(), name="api-brokers"),
    path("brokers/<name:broker>", api.BrokerOne.as_view(), name="api-broker"),
    path("broker-settings", BrokerSettings.as_view(), name="api-broker-settings"),
    path("credentials", CredentialsResource.as_view(), name="api-credentials"),
    path("read-only", ReadOnlyResource.as_view(), name="api-read-only"),
    path("name-server-keys", NameServerKeys.as_view(), name="api-name-server-keys"),
    path("name-servers", api.NameServerList.as_view(), name="api-name-servers"),
]
