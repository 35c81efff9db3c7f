"""What the rows of a batch begin with alike."""

from typing import Any

# Below this share of tokens saved, the copies of keys and values cost more than they bring.
WORTH = 0.2


def beginnings_first(ids: Any, mask: Any, positions: Any) -> Any:
    """An order of each row's columns that puts what all rows begin with into the first ones.

    Rows of different lengths are padded on the left, so that an equal beginning stands in other
    columns of each. Here the padding comes after it. No token sees padding and all others keep
    their order, so that nothing but the columns changes.

    Args:
        ids: (B, T) token ids.
        mask: (B, T) attention mask, or None.
        positions: (B, T) or (1, T) positions of the tokens, or None. Where padding counts in them,
            as where none are given, equal beginnings have different keys.

    Returns:
        (B, T) the column whose token comes there; None where nothing is to be moved.
    """
    import numpy as np
    import torch

    if mask is None or positions is None:
        return None
    tokens = _tokens(ids, mask)
    padding = (tokens >= 0).argmax(axis=1)[:, None]
    if (padding == padding[0]).all():
        return None
    columns = np.arange(tokens.shape[1])[None]
    begun = np.take_along_axis(tokens, columns[:, : tokens.shape[1] - padding.max()] + padding, 1)
    first = np.take_along_axis(np.broadcast_to(positions.cpu().numpy(), tokens.shape), padding, 1)
    if (first != first[0]).any():
        return None
    shared = int(np.append((begun == begun[0]).all(axis=0), False).argmin())
    if not shared:
        return None
    moved = np.where(columns < shared + padding, columns - shared, columns)
    order = np.where(columns < shared, columns + padding, moved)
    return torch.from_numpy(order).to(ids.device)


def split(ids: Any, mask: Any) -> tuple[int, Any, Any]:
    """Where to part a batch so that the fewest tokens are computed.

    Args:
        ids: (B, T) token ids.
        mask: (B, T) attention mask, or None.

    Returns:
        The number of columns C to share, 0 if it is not worth it; (P,) a row for each distinct
        prefix of C columns; (B,) which of these prefixes each row begins with.
    """
    import numpy as np
    import torch

    tokens = _tokens(ids, mask)
    rows, columns = tokens.shape
    group = np.zeros(rows, dtype=np.int64)
    best = (rows * columns * (1 - WORTH), 0, group)
    span = int(tokens.max()) + 2
    for column in range(columns):
        group = np.unique(group * span + tokens[:, column] + 1, return_inverse=True)[1]
        prefixes = int(group.max()) + 1
        if prefixes == rows:
            break
        cost = prefixes * (column + 1) + rows * (columns - column - 1)
        if cost < best[0]:
            best = (cost, column + 1, group)
    _, cut, group = best
    first = np.unique(group, return_index=True)[1]
    return cut, torch.from_numpy(first).to(ids.device), torch.from_numpy(group).to(ids.device)


def _tokens(ids: Any, mask: Any) -> Any:
    """(B, T) token ids in NumPy, -1 where there is none."""
    import numpy as np

    tokens = ids.cpu().numpy()
    return tokens if mask is None else np.where(mask.cpu().numpy() > 0, tokens, -1)
