"""Entry point of Spark's pods: what Kubernetes starts in an image with Gantry and PySpark.

    python -m spark_jobs.kubernetes executor              the arguments and variables that Spark's
    python -m spark_jobs.kubernetes driver ARGUMENTS …    scheduler gives its pods

The contract is that of Spark's own image: an executor reads SPARK_DRIVER_URL, SPARK_EXECUTOR_ID,
SPARK_EXECUTOR_CORES, SPARK_EXECUTOR_MEMORY, SPARK_APPLICATION_ID, SPARK_EXECUTOR_POD_IP,
SPARK_EXECUTOR_POD_NAME, SPARK_RESOURCE_PROFILE_ID and the Java options SPARK_JAVA_OPT_0, _1, …; a
driver passes its arguments to spark-submit, and SPARK_DRIVER_BIND_ADDRESS. The program replaces
this process, so signals of the kubelet reach Java.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

from core_broker.errors import GantryError
from spark_jobs.spark.java import SparkUnavailableError, java_for_spark
from spark_jobs.spark.session import MEMORY_SETTINGS

BACKEND: Final = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
#: Options of the executor's backend, and the variables with their values.
OPTIONS: Final[Mapping[str, str]] = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
JAVA_OPTION: Final = re.compile(r"SPARK_JAVA_OPT_(\d+)")
#: Folder of the Java shim, see `spark_jobs.spark.java`.
RUN_DIR: Final = Path("/tmp/spark")  # noqa: S108 -- the pod's own folder
EXIT_USAGE: Final = 2


class WrongCallError(GantryError):
    """The arguments or variables are not those of Spark's scheduler."""


def command_of(
    arguments: Sequence[str], environ: Mapping[str, str], java_home: Path, spark_home: Path
) -> list[str]:
    """The command line of a pod's program. Raises WrongCallError with the missing variables."""
    match list(arguments):
        case ["executor"]:
            return executor_command(environ, java_home, spark_home)
        case ["driver", *rest]:
            bind = environ.get("SPARK_DRIVER_BIND_ADDRESS")
            address = ["--conf", f"spark.driver.bindAddress={bind}"] if bind else []
            submit = str(spark_home / "bin" / "spark-submit")
            return [submit, *address, "--deploy-mode", "client", *rest]
    raise WrongCallError(f"expected `executor` or `driver ARGUMENTS …`, not {list(arguments)}")


def executor_command(environ: Mapping[str, str], java_home: Path, spark_home: Path) -> list[str]:
    """Java with the executor's backend."""
    needed = (*OPTIONS.values(), "SPARK_EXECUTOR_MEMORY")
    if missing := [name for name in needed if not environ.get(name)]:
        raise WrongCallError(
            f"{', '.join(missing)} is not set: Spark's scheduler for Kubernetes starts executors."
        )
    memory = environ["SPARK_EXECUTOR_MEMORY"]
    classes = [environ.get("SPARK_CONF_DIR", ""), f"{spark_home}/jars/*"]
    classes += [environ.get("SPARK_EXTRA_CLASSPATH", ""), environ.get("SPARK_DIST_CLASSPATH", "")]
    return [
        str(java_home / "bin" / "java"),
        *java_options(environ),
        *(f"-Xms{memory}", f"-Xmx{memory}"),
        *("-cp", ":".join(filter(None, classes))),
        BACKEND,
        *(part for option, name in OPTIONS.items() for part in (option, environ[name])),
    ]


def java_options(environ: Mapping[str, str]) -> list[str]:
    """The values of SPARK_JAVA_OPT_n, by number."""
    found = {
        int(match[1]): text
        for name, text in environ.items()
        if (match := JAVA_OPTION.fullmatch(name))
    }
    return [found[number] for number in sorted(found)]


def main() -> NoReturn:
    import pyspark

    try:
        java = java_for_spark(os.environ, RUN_DIR)
        spark_home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
        command = command_of(sys.argv[1:], os.environ, java.home, spark_home)
    except (SparkUnavailableError, WrongCallError) as problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(EXIT_USAGE)
    defaults = {**MEMORY_SETTINGS, "PYSPARK_PYTHON": sys.executable}
    environ = {**defaults, **os.environ, "JAVA_HOME": str(java.home)}
    os.execve(command[0], command, environ)  # noqa: S606 -- the command is a list of arguments


if __name__ == "__main__":
    main()
