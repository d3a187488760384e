"""Names and summaries of operations in the OpenAPI document.

Generated SDKs name their functions after operations. The name of an operation is a verb and a noun,
such as `list_topics`. The default name comes from the class of the resource and the HTTP method
(`default_name`); RENAMED has the actions, whose verb is in the path, and nouns that differ from the
class. A new resource with an action adds its line here; `tests/api/test_conventions.py` refuses
names that do not begin with one of VERBS.
"""

import re
from typing import Final

METHOD_VERBS: Final = {
    "get": "get",
    "post": "create",
    "put": "replace",
    "patch": "update",
    "delete": "delete",
}
#: Verbs of operations. `start` returns a job; `try` and `test` change nothing in the cluster.
VERBS: Final = (
    *("list", "get", "find", "search", "check", "create", "elect", "replace", "update", "delete"),
    *(
        "cancel",
        "kick",
        "continue",
        "discard",
        "pause",
        "protect",
        "renew",
        "reset",
        "resend",
        "restore",
    ),
    *("restore", "resume", "save", "send", "start", "tail", "test", "try", "undo", "unprotect"),
)
RENAMED: Final = {
    "get_audit": "get_audit_row",
    "list_audits": "list_audit_rows",
    "get_access_check": "check_access",
    "create_acl_account_new_secret": "renew_acl_account_secret",
    "create_acl_user_new_secret": "renew_acl_user_password",
    "list_acl_whites": "get_acl_white_list",
    "update_acl_white": "update_acl_white_list",
    "get_summary": "get_analytics_summary",
    "get_edges": "list_analytics_edges",
    "get_funnel": "get_analytics_funnel",
    "get_groups": "list_analytics_groups",
    "get_heat_map": "get_analytics_heat_map",
    "get_kinds": "list_analytics_kinds",
    "get_latency": "list_analytics_latencies",
    "get_series": "get_analytics_series",
    "get_slow": "list_slowest_messages",
    "get_topics": "list_analytics_topics",
    "list_connecteds": "list_clients",
    "list_clients": "list_group_clients",
    "get_client": "get_group_client",
    "get_credentials_resource": "get_credentials",
    "replace_credentials_resource": "replace_credentials",
    "delete_credentials_resource": "delete_credentials",
    "create_alarm_receiver_test": "test_alarm_receiver",
    "create_alarm_rule_preview": "test_alarm_rule",
    "create_dead_letter_discard": "discard_dead_letters",
    "create_dead_letter_resend": "resend_dead_letters",
    "create_dead_letter_restore": "restore_dead_letters",
    "create_dead_letter_try": "try_dead_letter",
    "get_dead_letter_export": "get_dead_letters_file",
    "create_client_kick": "kick_client",
    "create_election": "elect_master",
    "create_replay": "start_replay",
    "create_user_password": "reset_user_password",
    "get_replay_outcomes": "list_replay_outcomes",
    "create_table_exports": "start_table_export",
    "create_message_exports": "start_message_export",
    "list_offsets": "list_group_offsets",
    "create_offset": "reset_group_offsets",
    "list_resets": "list_offset_resets",
    "get_reset": "get_offset_reset",
    "create_reset_undo": "undo_offset_reset",
    "create_job": "start_job",
    "create_job_cancel": "cancel_job",
    "create_job_continue": "continue_job",
    "create_job_pause": "pause_job",
    "create_job_resume": "resume_job",
    "get_load_now": "get_load",
    "get_messages": "list_messages",
    "create_messages": "send_messages",
    "list_found_messages": "find_messages",
    "create_filter_test": "test_message_filter",
    "create_half_message_checks": "check_half_messages",
    "get_read_only_resource": "get_read_only",
    "delete_read_only_resource": "delete_read_only",
    "replace_read_only_resource": "replace_read_only",
    "get_saved_views": "list_saved_views",
    "create_saved_views": "save_view",
    "get_topic_tail": "tail_topic",
    "get_topology_resource": "get_topology",
    "search": "search_cluster",
}
_GENERIC = re.compile(
    r"^(?P<verb>create|replace|delete)_(?P<noun>\w+?)_(?P<what>protection|bulk_delete|bulk_update)$"
)
SUMMARY_CHARS_MAX: Final = 120
#: Nouns of the generic resources' descriptions, replaced by the noun of the path.
_NOUNS: Final = {
    "topics": ("topic", "topics"),
    "groups": ("consumer group", "consumer groups"),
    "acl-accounts": ("account", "accounts"),
    "acl-users": ("user", "users"),
}


def default_name(class_name: str, method: str) -> str:
    """Return the name of a resource's method: `TopicList` gives `list_topics`, `create_topic`."""
    noun = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", class_name).lower()
    verb = METHOD_VERBS[method.lower()]
    if noun.endswith("_list"):
        noun = noun.removesuffix("_list")
        return f"list_{noun}s" if verb == "get" else f"{verb}_{noun}"
    return f"{verb}_{noun.removesuffix('_one')}"


def name_of(class_name: str, method: str) -> str:
    """Return the name of an operation."""
    name = default_name(class_name, method)
    if name in RENAMED:
        return RENAMED[name]
    generic = _GENERIC.match(name)
    if generic is None:
        return name
    verb, noun, what = generic["verb"], generic["noun"], generic["what"]
    if what == "protection":
        return f"{'un' if verb == 'delete' else ''}protect_{noun}"
    return f"{what.removeprefix('bulk_')}_{noun}s"


def concrete(text: str, area: str) -> str:
    """Return a description of a generic resource with the noun of its area."""
    if area not in _NOUNS:
        return text
    one, many = _NOUNS[area]
    article = "an" if one[0] in "aeio" else "a"
    return (
        text.replace("several resources", f"several {many}")
        .replace(
            "Protected resources and resources with clients",
            f"Protected {many} and {many} with clients",
        )
        .replace("the resources", f"the {many}")
        .replace("A resource", f"{article.title()} {one}")
        .replace("a resource", f"{article} {one}")
        .replace("the resource", f"the {one}")
    )


def summary_of(description: str) -> str:
    """Return the first sentence or clause of a description, without the full stop."""
    first = " ".join(description.split("\n\n", maxsplit=1)[0].split())
    sentence = re.split(r"(?<=[a-z0-9`)])[.;:] ", f"{first} ")[0].strip().removesuffix(".")
    if len(sentence) <= SUMMARY_CHARS_MAX:
        return sentence
    return sentence[:SUMMARY_CHARS_MAX].rpartition(" ")[0].rstrip(",;:")
