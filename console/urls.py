"""URLs outside of areas; each area has URL modules (see `frame/areas.py`)."""

from django.urls import include, path
from django.views.decorators.cache import never_cache
from django.views.i18n import set_language

from console.frame.access import Need, needs
from console.frame.areas import mounted
from console.services.clusters.views import HomePage
from console.web import documentation, health

urlpatterns = [
    path("", HomePage.as_view(), name="home"),
    path("preferences/language/", needs(Need.OPEN)(set_language), name="set_language"),
    path("docs/", documentation.documentation, name="documentation"),
    path("docs/<path:name>", documentation.documentation_file, name="documentation-file"),
    path("api/", include("console.api.urls")),
    path("livez", never_cache(health.livez), name="livez"),
    path("readyz", never_cache(health.readyz), name="readyz"),
    path("healthz", never_cache(health.readyz), name="healthz"),
    path("metrics", never_cache(health.metrics_page), name="metrics"),
    path("varz", never_cache(health.varz), name="varz"),
    path("", include("console.classic.urls")),
    path("clusters/<str:cluster>/", include(mounted("urls", "cluster"))),
    *mounted("urls", "console"),
]

handler400 = "console.web.error_pages.bad_request"
handler404 = "console.web.error_pages.page_not_found"
handler500 = "console.web.error_pages.page_failed"
