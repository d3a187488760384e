"""The control room: pages, REST API and live feeds over RocketMQ clusters.

Where things live:

    settings.py, environment.py     settings of the operator
    frame/areas.py                  plug-in mechanism of areas (topics, groups, …)
    frame/access.py                 access control
    gateway/                        the only access to clusters
    frame/                          base of all pages: classes, tables, forms, templates
    api/                            base of all REST resources
    web/                            middleware, health, static files, live feeds
    areas/<area>/, services/<area>/ one Django app per area: views, api, urls, templates, locale
"""

from core_broker.trace_package import provide_trace_package

provide_trace_package()
