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
#: Compiled in place, with C types in a .pxd file beside the module; plain Python elsewhere.
IN_PLACE = tuple(Path("trace") / f"{name}.py" for name in ("scan", "attempts", "facts"))


def sources() -> Iterator[tuple[str, Path]]:
    """Name and source of every compiled module."""
    for source in (*sorted(KERNEL.glob("[!_]*.py")), SHARED):
        yield f"core_broker.kernel.{source.stem}", source
    for source in IN_PLACE:
        yield ".".join(source.with_suffix("").parts), source


def kernel_modules() -> list[Extension]:
    """The extension modules, or none without Cython."""
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    modules = [
        Extension(
            name,
            [str(source)],
            libraries=["z"],
            extra_compile_args=["-O2"],
            optional=True,
        )
        for name, source in sources()
    ]
    return cythonize(modules, build_dir="build/kernel", quiet=True)


setup(ext_modules=kernel_modules())
