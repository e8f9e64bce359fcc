"""Gives the wheel the platform of the library inside. All else is in pyproject.toml."""

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class PlatformWheel(bdist_wheel):
    """A wheel for any Python 3 on one platform: ctypes needs no ABI of Python."""

    def get_tag(self) -> tuple[str, str, str]:
        _, _, platform = super().get_tag()
        return "py3", "none", platform


class WithLibrary(Distribution):
    """A distribution that contains machine code."""

    def has_ext_modules(self) -> bool:
        return True


setup(distclass=WithLibrary, cmdclass={"bdist_wheel": PlatformWheel})
