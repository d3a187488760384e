"""Words that several answers share, spelled as RocketMQ 4.9.8 spells them.

Compatible with RocketMQ's FAQUrl.
"""

_FAQ = "http://rocketmq.apache.org/docs/faq/"

#: Appended to refusals that newcomers run into.
SEE_FAQ = f"\nSee {_FAQ} for further details."
