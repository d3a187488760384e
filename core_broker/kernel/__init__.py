"""The measured hot loops, compiled with Cython's pure-Python mode.

Nothing here is needed. What the kernel does not take, or everything where it is not compiled, the
plain path handles; both give the same bytes. GANTRY_KERNEL=off switches it off for a whole
process, as the tests of the plain path do.
"""

import os

if os.environ.get("GANTRY_KERNEL") == "off":
    raise ImportError("the kernel is switched off by GANTRY_KERNEL=off")
