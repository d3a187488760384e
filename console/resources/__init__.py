"""Generic pages and REST resources for configured resources: topics, groups, and kinds to come.

A kind of resource brings a form, a serializer and its questions to the gateway; protection, undo,
change history and acting on many at once are here.
"""
