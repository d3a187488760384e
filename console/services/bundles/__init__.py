"""The debug bundle: a ZIP with what a helper needs to see of a cluster, without secrets.

parts.py      the files of a bundle, each from one source
masking.py    known secrets, and texts that look like one, are replaced in every file
bundle.py     the ZIP; a part that fails is named in `manifest.json`
job.py        the bundle as a job; `manage.py debug_bundle` writes one without a worker
"""
