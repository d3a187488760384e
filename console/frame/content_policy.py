"""What browsers may do with our pages: all from here, nothing from elsewhere, nothing inline.

`default-src 'self'` holds for every page, so templates carry no `<script>` text, no `style=""` and
no `on…=""`; what a script needs comes in `data-` attributes.
"""

CONTENT_POLICY = "; ".join(
    (
        "default-src 'self'",
        "img-src 'self' data:",  # the style sheet draws its arrows and ticks with data: images
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
PERMISSIONS_POLICY = "camera=(), microphone=(), geolocation=(), payment=(), usb=()"
