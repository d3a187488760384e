"""Builds the compiled kernel of the broker; everything else is in pyproject.toml.

    python setup.py build_ext --inplace     beside its sources, as tools/setup.sh does
    make wheel                              into a wheel, with the modules that are compiled already

Each module is optional: where there is no C compiler or no zlib header, the package is built
without, and the broker takes the slow path for all requests. The wheel also gets the files that lie
beside the packages and that the console reads (console/project_files.py).
"""

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

KERNEL = Path("core_broker") / "kernel"
#: Also used as plain Python; core_broker/kernel has its C types.
SHARED = (
    Path("core_broker") / "remoting" / "connection_state.py",
    Path("core_broker") / "store" / "queue_tail.py",
)
#: Compiled in place, with C types in a .pxd file beside the module; plain Python elsewhere.
IN_PLACE = tuple(Path("trace") / f"{name}.py" for name in ("scan", "attempts", "facts"))
#: Without debug information, which is three quarters of a module; profilers read the symbols.
FLAGS = ["-O2", "-g0"]
#: Copied into console/files, with the same names.
CONSOLE_FILES = (Path("static"), Path("docs/settings.md"), Path("NOTICE"))


def sources() -> Iterator[tuple[str, Path]]:
    """Name and source of every compiled module."""
    for source in (*sorted(KERNEL.glob("[!_]*.py")), *SHARED):
        yield f"core_broker.kernel.{source.stem}", source
    for source in IN_PLACE:
        yield ".".join(source.with_suffix("").parts), source


def compiled(name: str) -> Path:
    """Where `build_ext --inplace` of this interpreter puts the module."""
    return Path(*name.split(".")).with_suffix(sysconfig.get_config_var("EXT_SUFFIX"))


def is_current(name: str) -> bool:
    """Return True when the module is compiled, and no source of the kernel is newer."""
    inputs = [source for _, source in sources()]
    inputs += [*KERNEL.glob("*.pxd"), *Path("trace").glob("*.pxd")]
    module = compiled(name)
    newest = max(path.stat().st_mtime for path in inputs)
    return module.exists() and module.stat().st_mtime > newest


def kernel_modules() -> list[Extension]:
    """The extension modules, or none without Cython."""
    in_place = "--inplace" in sys.argv
    modules = [
        Extension(name, [str(source)], libraries=["z"], extra_compile_args=FLAGS, optional=True)
        for name, source in sources()
    ]
    if not in_place and all(is_current(module.name) for module in modules):
        return modules
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    translated = cythonize(modules, build_dir="build/kernel", quiet=True)
    for module in translated:
        module.optional = True  # cythonize() does not copy this attribute
    return translated


class BuildKernel(build_ext):
    """Copies modules that were compiled in place; compiles the others from Cython's C files.

    Compilers run in parallel, one per core, unless `--parallel` says otherwise.
    """

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extension(self, extension: Extension) -> None:
        if any(source.endswith(".py") for source in extension.sources):
            target = Path(self.get_ext_fullpath(extension.name))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(compiled(extension.name), target)
        else:
            super().build_extension(extension)


class BuildPackages(build_py):
    """Adds the files that lie beside the packages."""

    def run(self) -> None:
        super().run()
        if getattr(self, "editable_mode", False):
            return
        target = Path(self.build_lib) / "console" / "files"
        shutil.rmtree(target, ignore_errors=True)
        for path in CONSOLE_FILES:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, target / path)
            else:
                shutil.copy2(path, target / path)


setup(
    ext_modules=kernel_modules(),
    cmdclass={"build_ext": BuildKernel, "build_py": BuildPackages},
)
