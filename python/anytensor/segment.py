"""The functions of segments by the path under which programs of the first versions import them."""

from .core import __getattr__ as __getattr__
