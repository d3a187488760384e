"""The paths of rocketmq-dashboard's Classic (`/topic/list.query`, …), for scripts that use them.

The calls use the gateway functions, permissions and audit list of Gantry's own API. docs/classic.md
lists the supported paths.
"""
