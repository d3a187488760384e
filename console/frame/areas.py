"""Areas: the plug-in mechanism for parts of the console (topics, groups, …).

An area is a Django app whose `apps.py` holds an `AreaConfig`; `settings.AREAS` lists them in the
order of the navigation. No other code names an area: URLs, navigation and translations follow from
the folder. To add one, copy `console/areas/topics`:

    apps.py         an AreaConfig: name, label, title, icon
    urls.py         `app_name = "<label>"`; pages below /clusters/<cluster>/
    api_urls.py     optional; resources below /api/v1/clusters/<cluster>/
    console_api_urls.py   optional; resources below /api/v1/ of an area with scope "cluster"
    ws_urls.py      optional; feeds below /ws/clusters/<cluster>/
    views.py        pages: subclasses of `console.frame.pages.ClusterPage`
    api.py          resources: subclasses of `console.api.views.ClusterResource`
    templates/<label>/*.html    extend "page.html"
    locale/         translations of the area, see `console.management.commands.translate`

Questions to the cluster go into `console/gateway/<label>/`. An area with `scope = "console"` does
not belong to a cluster: URLs of such an area are below /, /api/v1/ and /ws/.
"""

from importlib.util import find_spec
from typing import Any, Literal

from django.apps import AppConfig, apps
from django.urls import include, path, reverse

Kind = Literal["urls", "api_urls", "console_api_urls", "ws_urls"]


class AreaConfig(AppConfig):
    """One area. `title` is a lazy translation; `icon` a file of static/vendor/icons."""

    #: Django selects the only default class of an `apps.py`: the area's class, not this base class.
    default = False

    title: Any = ""
    icon: str = "table"
    scope: Literal["cluster", "console"] = "cluster"
    #: Need that a user must satisfy to see the navigation entry: a value of
    #: `console.frame.access.Need`.
    need: str = "read"
    #: Resource of the permissions for the area (`console.frame.permissions`); default: the label.
    resource: str = ""
    #: URL arguments with the name that a permission is compared with.
    name_arguments: tuple[str, ...] = ()
    #: False for an area that users reach from pages of other areas.
    in_navigation: bool = True
    #: Name of the page behind the navigation entry.
    start: str = "list"
    #: Label of the area whose navigation entry leads to this area, by tabs
    #: (`parts/area_tabs.html`); an area with a parent has no entry of its own.
    parent: str = ""
    #: Lazy translation: the title of the tab.
    tab: Any = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.default = True
        cls.resource = cls.resource or getattr(cls, "label", "")

    @property
    def entry(self) -> str:
        """Label of the area whose navigation entry leads to this area."""
        return self.parent or self.label

    @property
    def start_name(self) -> str:
        return f"{self.label}:{self.start}"

    def start_url(self, cluster: str | None) -> str | None:
        """Return the URL of the first page.

        None for a page of a cluster when no cluster is configured.
        """
        if self.scope == "console":
            return reverse(self.start_name)
        return reverse(self.start_name, kwargs={"cluster": cluster}) if cluster else None

    def submodule(self, kind: Kind) -> str | None:
        dotted = f"{self.name}.{kind}"
        return dotted if find_spec(dotted) else None


def areas() -> list[AreaConfig]:
    """All areas in the order of the navigation."""
    return [config for config in apps.get_app_configs() if isinstance(config, AreaConfig)]


def mounted(
    kind: Literal["urls", "api_urls", "console_api_urls"], scope: str | None = None
) -> list[Any]:
    """URL patterns of pages or resources, of the areas of one scope or of all areas."""
    patterns = []
    for area in areas():
        module = area.submodule(kind)
        if module and scope in (None, area.scope):
            patterns.append(path("", include(module)))
    return patterns
