"""Rules of masks: which fields of messages are shown as `***` without the action `unmasked`.

`console.gateway.messages.masks` applies the rules, `console.frame.masking` finds what a user sees.
"""
