"""What the reader learns from: characters, located words, and late interaction."""

from typing import TYPE_CHECKING

from torch import Tensor, arange, nn, stack
from torch.nn.functional import cross_entropy, normalize, pad

from launch.page_reader.pages import CLASSES

if TYPE_CHECKING:
    from launch.page_reader.batches import Batch

KINDS = len(CLASSES) + 2
NEIGHBOURS = (-2, -1, 0, 1, 2)
TEMPERATURE = 0.05
POOLED_TEMPERATURE = 0.02


class CharacterHead(nn.Module):
    """For the warm-up: the characters of a patch and of its neighbours in the row, from its vector.

    It is thrown away afterwards.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, len(NEIGHBOURS) * 2 * KINDS)

    def forward(self, hidden: Tensor, batch: "Batch") -> Tensor:
        """hidden: (pages, patches, width). Returns the mean cross-entropy."""
        labels = batch.characters.view(len(hidden), -1, batch.columns, 2)
        reach = max(NEIGHBOURS)
        wide = pad(labels, (0, 0, reach, reach), value=KINDS - 1)
        seen = [wide[:, :, reach + n : reach + n + batch.columns] for n in NEIGHBOURS]
        target = stack(seen, 3).reshape(-1)
        return cross_entropy(self.linear(hidden).view(-1, KINDS).float(), target)


def located(queries: Tensor, ids: Tensor, patches: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Contrast between query tokens and the patches of the whole batch that show them.

    queries: (tokens, 128), ids: (tokens,), patches: (patches, 128), labels: (patches, 2).

    Returns:
        The loss, both ways; and the share of query tokens whose best patch shows them.
    """
    same = (labels[:, 0] == ids[:, None]) | (labels[:, 1] == ids[:, None])
    cosines = queries @ patches.T
    right = same[range(len(ids)), cosines.argmax(1)]
    weights = ((cosines - 1) / TEMPERATURE).exp()  # of unit vectors: from e^-40 to 1
    hits = weights * same
    losses = []
    for side in (1, 0):
        shown = same.any(side)  # chosen first: the others' 0 would make every gradient NaN
        losses.append((weights.sum(side)[shown] / hits.sum(side)[shown]).log().mean())
    return losses[0] + losses[1], right.float().mean()


def pooled(queries: Tensor, pages: Tensor) -> Tensor:
    """Contrast between mean vectors: what chooses the candidates of a search in two stages.

    queries: (n x pages, tokens, 128), in the order of the pages n times; pages: (pages, tokens,
    128). Padding is zeros.
    """
    scores = normalize(queries.sum(1), dim=1) @ normalize(pages.sum(1), dim=1).T
    own = arange(len(pages)).repeat(len(queries) // len(pages))
    return cross_entropy(scores.float() / POOLED_TEMPERATURE, own)
