"""The page's colours, light and dark, and the pairs that must be told apart (WCAG 2.2, AA).

The page has them as CSS variables; the plots are drawn in the light ones and, within the page,
follow the variables.
"""

LIGHT = {
    "bg": "#ffffff",
    "surface": "#f5f6f7",
    "line": "#dde1e6",
    "edge": "#7d8793",
    "ink": "#15181c",
    "muted": "#545d68",
    "accent": "#0a559e",
    "gain": "#0a6640",
    "gain-bg": "#dcf1e5",
    "loss": "#a02c14",
    "loss-bg": "#fae5df",
    "found": "#6b4e00",
    "found-bg": "#fdf3d0",
    "series-1": "#1f66ad",
    "series-2": "#b3541e",
    "series-3": "#2a7d5f",
    "series-4": "#7a4fa3",
    "heat-0": "#f1f5fa",
    "heat-1": "#d6e4f2",
    "heat-2": "#b3cfe8",
    "heat-3": "#86b2d9",
    "heat-4": "#2f74b5",
    "heat-5": "#195a96",
    "heat-6": "#0c4073",
    "heat-low": "#15181d",  # text on steps 0 to 3
    "heat-high": "#fffffe",  # text on steps 4 to 6
}
DARK = {
    "bg": "#131619",
    "surface": "#1b1f23",
    "line": "#2f353b",
    "edge": "#7c8691",
    "ink": "#e6e9ec",
    "muted": "#a3acb6",
    "accent": "#84b6f4",
    "gain": "#74d3a6",
    "gain-bg": "#143526",
    "loss": "#ff9f88",
    "loss-bg": "#43221a",
    "found": "#e8c566",
    "found-bg": "#332b12",
    "series-1": "#6ea8e6",
    "series-2": "#e89a68",
    "series-3": "#62c29e",
    "series-4": "#bb98e0",
    "heat-0": "#1a2027",
    "heat-1": "#1d2e40",
    "heat-2": "#213f5d",
    "heat-3": "#28537d",
    "heat-4": "#78aede",
    "heat-5": "#9ac6ec",
    "heat-6": "#c4dff7",
    "heat-low": "#e6e9ed",
    "heat-high": "#101418",
}
STEPS = 7

# (in front, behind): text needs a contrast of 4.5, what is not text of 3.
TEXT = [
    *(
        (text, back)
        for text in ("ink", "muted", "accent", "gain", "loss", "found")
        for back in ("bg", "surface")
    ),
    *((text, "found-bg") for text in ("ink", "muted", "accent", "gain", "loss", "found")),
    *((text, back) for text in ("ink", "muted") for back in ("gain-bg", "loss-bg")),
    ("gain", "gain-bg"),
    ("loss", "loss-bg"),
    ("bg", "accent"),
    *(("heat-low" if step < 4 else "heat-high", f"heat-{step}") for step in range(STEPS)),
]
SHAPES = [
    *((shape, "bg") for shape in ("edge", "gain", "loss", "found", "muted")),
    ("edge", "surface"),
    *((f"series-{number}", back) for number in range(1, 5) for back in ("bg", "surface")),
]


def heat(share: float) -> tuple[str, str]:
    """Names of the colours of a cell and of its text; share: 0 lowest, 1 highest."""
    step = min(STEPS - 1, max(0, int(share * STEPS)))
    return f"heat-{step}", "heat-low" if step < 4 else "heat-high"


def contrast(front: str, behind: str) -> float:
    """The contrast ratio of two `#rrggbb`, 1 to 21, by WCAG's formula."""
    high, low = sorted((_luminance(front), _luminance(behind)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
