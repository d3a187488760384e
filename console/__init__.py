"""The control room: pages, REST API and live feeds over RocketMQ clusters.

Where things live:

    settings.py, environment.py     what an operator may change
    areas.py                        how an area (topics, groups, …) plugs in; how to add one
    access.py                       who may do what: the one place that decides
    gateway/                        the only door to clusters
    pages.py, tables.py, forms.py   what every page shares
    api/                            what every REST resource shares
    live/                           what every feed shares
    <area>/                         one Django app per area: views, api, urls, templates, locale
"""
