"""The paths of rocketmq-dashboard's Classic (`/topic/list.query`, …), for scripts that use them.

They answer from the same questions as our own API, under the same permissions, and writes are in
the same audit list. docs/classic.md says what answers and what does not.
"""
