"""The pages of `make screenshots`: name of the picture, and the path of the page.

A path from the root is a page of the console, another path is a page below the cluster. Names in
braces are objects that the demo creates while it runs, see `tools.screenshots.objects_of`.
"""

from typing import Final

#: Pages of docs/images.
PAGES: Final = {
    "overview": "",
    "history": "?range=15m#history",
    "findings": "findings/",
    "alarms": "alarms/",
    "alarm": "{alarm}",
    "alarm-rules": "alarms/rules/",
    "topology": "topology/",
    "topics": "topics/",
    "topic": "topics/orders/",
    "groups": "groups/",
    "group": "groups/accounting/",
    "messages": "messages/?topic=orders",
    "dead-letters": "dlq/accounting/",
    "offsets": "groups/accounting/offsets/?topic=payments&to=earliest",
    "journey": "{journey}",
    "delayed": "delayed/",
    "half-messages": "half-messages/",
    "definitions": "definitions/",
    "replicas": "replicas/broker-a/?range=10m",
    "roles": "/accounts/roles/?resource=groups&action=write&name=accounting&cluster=",
    "analytics": "analytics/?range=15m",
    "jobs": "jobs/",
}
#: Further pages of a review.
REVIEW_PAGES: Final = {
    **PAGES,
    "topic-messages": "topics/orders/messages/",
    "topic-queues": "topics/orders/queues/",
    "topic-consumers": "topics/orders/consumers/",
    "topic-configuration": "topics/orders/configuration/",
    "topic-permissions": "topics/orders/permissions/",
    "topic-edit": "topics/orders/edit/",
    "topic-delete": "topics/orders/delete/",
    "topic-create": "create-topic/",
    "group-queues": "groups/accounting/queues/",
    "group-consumers": "groups/accounting/consumers/",
    "group-configuration": "groups/accounting/configuration/",
    "dead-letter-groups": "dlq/",
    "dead-letter": "{dead_letter}",
    "message": "{message}",
    "body-schemas": "body-schemas/",
    "body-schema": "body-schemas/schema/invoices/",
    "body-rule": "{body_rule}",
    "discarded": "half-messages/discarded/",
    "clients": "clients/",
    "client": "{client}",
    "producers": "producers/",
    "brokers": "brokers/",
    "broker": "brokers/broker-a/",
    "broker-settings": "broker-settings/",
    "name-servers": "name-servers/",
    "name-server-keys": "name-servers/keys/",
    "credentials": "credentials/",
    "read-only": "read-only/",
    "masking": "masking/",
    "alarm-receivers": "alarms/receivers/",
    "alarm-silences": "alarms/silences/",
    "alarm-deliveries": "alarms/deliveries/",
    "alarm-history": "alarms/?state=resolved",
    "rule-create": "alarms/rules/create/",
    "receiver-create": "alarms/receivers/create/",
    "receiver": "{receiver}",
    "send": "messages/send/",
    "find": "messages/find/",
    "traces": "traces/",
    "saved-views": "saved-views/",
    "tail": "messages/tail/",
    "job": "{job}",
    "search": "search/?q=orders",
    "graph": "analytics/graph/?range=15m",
    "slow": "analytics/slow/?range=15m",
    "role": "/accounts/roles/one/payments-team/",
    "role-create": "/accounts/roles/create/",
    "users": "/accounts/users/",
    "security": "/accounts/security/",
    "tokens": "/accounts/tokens/",
    "audit": "/audit/",
    "clusters": "/",
    "api": "/api/docs/",
}
#: Definitions that differ from those of the demo.
DOCUMENT: Final = """\
format: gantry/definitions/1
topics:
  orders: {order: false, perm: 6, readQueueNums: 8, writeQueueNums: 8}
  refunds: {order: false, perm: 6, readQueueNums: 4, writeQueueNums: 4}
groups:
  accounting: {retryMaxTimes: 5}
"""
#: Forms to submit before the picture: selector of the field, its text, selector of the button.
FORMS: Final = {
    "definitions": ("textarea[name=text]", DOCUMENT, "form[enctype] button.btn-primary"),
}
#: Objects of paths in braces: the page below the cluster that links to the object, and the link.
#: The first link of several counts; the journey is behind the dead letter.
OBJECTS: Final = {
    "alarm": ("alarms/", "tbody a[href*='/alarms/']"),
    "receiver": ("alarms/receivers/", "tbody a[href*='/receivers/']"),
    "dead_letter": ("dlq/accounting/", "tbody a[href*='/dlq/accounting/']"),
    "message": ("messages/?topic=orders", "tbody a[href*='/messages/']"),
    "body_rule": ("body-schemas/", "tbody a[href*='/rules/']"),
    "client": ("clients/", "tbody a[href*='/clients/']"),
    "job": ("jobs/?kind=ingest", "tbody a[href*='/jobs/']"),
    "journey": ("{dead_letter}", "main a[href*='/traces/']"),
}
