"""Types of arguments that several commands take; what they refuse, argparse says in one line."""

from argparse import ArgumentTypeError


def path(text: str) -> str:
    """A path that was given: an empty one would mean the current folder."""
    if not text.strip():
        raise ArgumentTypeError(f"{text!r} is empty; give a path")
    if "\0" in text:
        raise ArgumentTypeError(f"{text!r} holds a NUL byte, which no path can; remove it")
    return text


def count(text: str) -> int:
    """A whole number from 0 on."""
    if not (text.isascii() and text.isdigit()):
        raise ArgumentTypeError(f"{text!r} is not a whole number from 0 on; give one such as 2")
    return int(text)


def names(text: str) -> list[str]:
    """Names apart by commas."""
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise ArgumentTypeError(f"{text!r} has an empty name; write names apart by commas: a,b")
    return found
