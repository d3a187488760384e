"""Sending of notices: content, formats of receivers, signatures, HTTP and mail.

content.py    what a notice says, in the receiver's language
formats.py    bodies and signatures of webhook, DingTalk, WeCom, Slack. Pure
http.py       one POST with checked address, deadline and bounded answer
send.py       a notice to a receiver of any kind
"""
