"""Where a value of the configuration was given: a line of the file, or the command line."""

from dataclasses import dataclass

from rewriter.yaml_source import Location, Source


@dataclass(frozen=True)
class Places:
    """The file, and the keys that the command line gave."""

    source: Source
    overridden: tuple[Location, ...] = ()

    def where(self, location: Location) -> str:
        """`file:line` or "command line"; both where the command line gave part of a section."""
        if any(location[: len(place)] == place for place in self.overridden):
            return "command line"
        parts = [place for place in self.overridden if place[: len(location)] == location]
        if parts and location and location not in self.source.lines:
            return "command line"
        given = " and ".join("--" + ".".join(part) for part in dict.fromkeys(parts))
        return self.source.where(location) + (f" with {given}" if given else "")
