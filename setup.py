"""Builds the compiled kernel of the broker; everything else is in pyproject.toml.

    python setup.py build_ext --inplace     beside its sources, as tools/setup.sh does
    pip wheel .                             into a wheel

Each module is optional: where there is no C compiler or no zlib header, the package is built
without, and the broker takes the plain path.
"""

from collections.abc import Iterator
from pathlib import Path

from setuptools import Extension, setup

KERNEL = Path("core_broker") / "kernel"
#: Also used as plain Python; core_broker/kernel has its C types.
SHARED = Path("core_broker") / "remoting" / "connection_state.py"


def sources() -> Iterator[Path]:
    """The files that are compiled into core_broker.kernel."""
    yield from sorted(KERNEL.glob("[!_]*.py"))
    yield SHARED


def kernel_modules() -> list[Extension]:
    """The extension modules, or none without Cython."""
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    modules = [
        Extension(
            f"core_broker.kernel.{source.stem}",
            [str(source)],
            libraries=["z"],
            extra_compile_args=["-O2"],
            optional=True,
        )
        for source in sources()
    ]
    return cythonize(modules, build_dir="build/kernel", quiet=True)


setup(ext_modules=kernel_modules())
