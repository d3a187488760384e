"""Sign-in by OpenID Connect: authorization code flow with PKCE.

http.py      bounded requests to the provider
provider.py  discovery, keys, exchange of the code
attempts.py  secrets between start and callback
tokens.py    checks of the ID token
views.py     start and callback
"""
