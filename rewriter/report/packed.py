"""Data for the page's script: JSON, gzip, base64, about a third of the plain size.

Base64 has no character that could end a <script> element, whatever the data says.
"""

import gzip
import json
from base64 import b64encode
from typing import Any


def packed(data: Any) -> str:
    """The text; the page unpacks it with the browser's own DecompressionStream."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A lone surrogate, which UTF-8 cannot hold, becomes "?".
    return b64encode(gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0)).decode("ascii")
