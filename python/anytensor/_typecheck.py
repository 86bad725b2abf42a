"""Run-time checks of dtypes, ranks and sizes by jaxtyping: off, and then at no cost, unless they are asked for.

jaxtyping's import hook rewrites Python source, and the functions are builtins. So _checked.py, which tools/opgen
writes, has one annotated function per op; under the hook (``install_import_hook("anytensor", ...)`` around the first
import), or after enable_typecheck(), these are the public functions. JAXTYPING_DISABLE=1 keeps the builtins.
"""

import functools
import importlib
import sys

from . import _core
from ._hook import no_type_check
from .torchscript import register_public

_CHECKED = f"{__package__}._checked"


@no_type_check
def steps_aside(checked):
    """A checked function, and the builtin in its place while something traces: sizes are symbols then."""
    plain = getattr(_core, checked.__name__)

    @functools.wraps(checked)
    def function(*args, **kwargs):
        if "sum_partitions" not in kwargs and _core._checkable(args, kwargs):  # a former name of one argument
            return checked(*args, **kwargs)
        return plain(*args, **kwargs)

    function.__doc__ = plain.__doc__
    return function


@no_type_check
def is_hooked():
    """Whether an import hook of jaxtyping rewrites _checked.py, and may. One for release 1.1.0's core means it, too."""
    finders = [finder for finder in sys.meta_path if type(finder).__module__.startswith("jaxtyping")]
    for finder in finders:
        if finder.should_instrument(f"{__package__}.core") and not finder.should_instrument(_CHECKED):
            finder.modules = [*finder.modules, _CHECKED]
    return any(finder.should_instrument(_CHECKED) for finder in finders) and not is_disabled()


@no_type_check
def is_disabled():
    import jaxtyping

    return jaxtyping.config.jaxtyping_disable


@no_type_check
def use_checked():
    """Makes the checked functions the public ones."""
    checked = importlib.import_module(_CHECKED)
    package = vars(sys.modules[__package__])
    package.update((op, getattr(checked, op)) for op in _core.ops if hasattr(checked, op))
    package.update((name, package[of]) for name, of in _core.aliases.items())
    register_public()


@no_type_check
def enable_typecheck(typechecker: str | None = "beartype.beartype") -> None:
    """Checks the arguments and results of the public functions from now on: dtypes, ranks, sizes that must agree.

    typechecker   what jaxtyping checks with: "module.function", or None for nothing

    A function that was taken out of the package before (``from anytensor import segment_sum``) is not checked. What is
    wrong is a jaxtyping.TypeCheckError. Calling it again, or with JAXTYPING_DISABLE=1, does nothing.
    """
    import jaxtyping

    if is_disabled() or _CHECKED in sys.modules:
        return
    with jaxtyping.install_import_hook(_CHECKED, typechecker):
        use_checked()
