"""Remark text that several answers share, spelled as in RocketMQ 4.9.8.

Compatible with RocketMQ's FAQUrl.
"""

_FAQ = "http://rocketmq.apache.org/docs/faq/"

#: Suffix of refusals with a common configuration cause.
SEE_FAQ = f"\nSee {_FAQ} for further details."
