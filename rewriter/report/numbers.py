"""How numbers are written on the page: three decimals, a true minus sign, intervals in brackets."""

from collections.abc import Mapping
from typing import Any

ABSENT = "–"


def value(number: float) -> str:
    """0.470"""
    return f"{number:.3f}".replace("-", "−")


def change(number: float) -> str:
    """+0.099 or −0.291"""
    return f"{number:+z.3f}".replace("-", "−")


def interval(found: Mapping[str, Any], signed: bool = False) -> str:
    """[.395, .547], or with signs [+.164, +.348]"""
    form = "+z.3f" if signed else "z.3f"
    ends = (format(float(found[end]), form).replace("0.", ".", 1) for end in ("low", "high"))
    return f"[{', '.join(ends)}]".replace("-", "−")


def p(number: float) -> str:
    """.082, or < .001"""
    return "< .001" if number < 0.001 else f"{number:.3f}".replace("0.", ".", 1)


def sign(found: Mapping[str, Any]) -> str:
    """Which side of 0 a whole interval is on: "gain", "loss", or "" for neither."""
    return "gain" if found["low"] > 0 else "loss" if found["high"] < 0 else ""
