"""The version of Longshelf, as the package states it."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("longshelf")
except PackageNotFoundError:  # run from a checkout that isn't installed
    VERSION = "0+checkout"
