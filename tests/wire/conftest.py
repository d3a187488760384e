"""Settings of Hypothesis: a loaded machine is no failure."""

from hypothesis import settings

settings.register_profile("wire", deadline=None)
settings.load_profile("wire")
