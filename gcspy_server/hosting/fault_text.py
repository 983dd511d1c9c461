"""Words about a driver's faults, the same wherever one is found."""

from __future__ import annotations

__all__ = ["fault_text", "label_of"]


def label_of(name: str, package: str) -> str:
    """Name of a driver with its package, for messages."""
    return f"driver {name}" + (f" ({package})" if package else "")


def fault_text(what: str, error: BaseException) -> str:
    """One line about a driver's fault."""
    text = " ".join(str(error).split()) or "no message"
    where = _place(error)
    return f"{what} failed: {type(error).__name__}: {text}" + (f" ({where})" if where else "")


def _place(error: BaseException) -> str:
    """File and line of the foreign code that raised an error; empty: our code raised it."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if "gcspy_server" not in code.co_filename:
            place = f"{code.co_filename.rpartition('/')[2]}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return place
