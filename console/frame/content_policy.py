"""Content-Security-Policy and Permissions-Policy: same-origin resources only, nothing inline.

`default-src 'self'` holds for every page, so templates carry no `<script>` text, no `style=""` and
no `on…=""`; scripts read parameters from `data-` attributes.
"""

CONTENT_POLICY = "; ".join(
    (
        "default-src 'self'",
        "img-src 'self' data:",  # the style sheet draws arrows and ticks with data: images
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
PERMISSIONS_POLICY = "camera=(), microphone=(), geolocation=(), payment=(), usb=()"
