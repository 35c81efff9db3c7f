"""Train the demo's page reader from scratch: a small ColQwen2 that finds pages by their words.

    python -m launch.train_page_reader --output runs/page-reader
    python -m launch.train_page_reader --output runs/page-reader --resume

The pages hold random words (``launch/page_reader/text.py``), drawn as the product draws pages. The
reader first learns which characters lie in each patch, then which query token each patch shows, and
then colpali-engine's late-interaction loss, while fonts, sizes and places widen step by step.
"""

import argparse
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import retrievers  # noqa: F401 - puts the torchvision guard in place before transformers
from launch.page_reader.batches import Batch, BatchMaker
from launch.page_reader.model import build_model, build_processor, build_tokenizer, quicken
from launch.page_reader.pages import PageMaker
from launch.page_reader.settings import Settings, Stage
from launch.page_reader.text import TextMaker
from retrievers.demo.stdlib import documents

if TYPE_CHECKING:
    import torch
    from colpali_engine.models import ColQwen2, ColQwen2Processor

log = logging.getLogger("page_reader")

STATE = "state.pt"


class Training:
    """Model, optimizer and data of one training.

    Args:
        output: folder of the result, which is written at every save; beside it lies the state, in
            ``state.pt``, until the last step is done.
    """

    def __init__(self, settings: Settings, output: Path) -> None:
        import torch
        from colpali_engine.loss import ColbertLoss

        from launch.page_reader.losses import CharacterHead

        self.settings, self.output = settings, output
        maker = TextMaker(f"{row['title']} {row['text']}" for row in documents())
        random = Random(settings.seed)
        texts = (maker.text(random, 400) for _ in range(settings.tokenizer_texts))
        tokenizer = build_tokenizer(texts, settings.size)
        torch.manual_seed(settings.seed)
        self.processor: ColQwen2Processor = build_processor(tokenizer, settings.size)
        self.model: ColQwen2 = build_model(tokenizer, settings.size)
        self.head = CharacterHead(settings.size.text_width)
        self.specials = len(tokenizer.all_special_ids)
        self.batches = BatchMaker(PageMaker(maker, tokenizer), self.processor, settings.patches)
        self.late = ColbertLoss()
        everything = [*self.model.parameters(), *self.head.parameters()]
        self.optimizer = torch.optim.AdamW(
            everything, betas=(0.9, 0.98), weight_decay=settings.weight_decay, fused=True
        )
        self.step = 0
        self.model.custom_text_proj.register_forward_pre_hook(self._keep)

    def _keep(self, module: Any, arguments: tuple["torch.Tensor"]) -> None:
        self.hidden = arguments[0]

    def run(self, until: int | None = None) -> None:
        """Train to the end, or until a step, and write the result."""
        last = min(until or self.settings.steps, self.settings.steps)
        quicken(self.model)
        seen: list[dict[str, float]] = []
        since = time.monotonic()
        with ThreadPoolExecutor(1) as pool:
            coming = pool.submit(self._batch, self.step)
            while self.step < last:
                batch, coming = coming.result(), pool.submit(self._batch, self.step + 1)
                seen.append(self._learn(batch))
                self.step += 1
                if self.step % self.settings.log_every == 0:
                    took = (time.monotonic() - since) / len(seen)
                    log.info("%s", self._line(seen, took))
                    seen, since = [], time.monotonic()
                if self.step % self.settings.save_every == 0:
                    self.save()
        self.save()
        if self.step == self.settings.steps:
            (self.output / STATE).unlink()

    def _batch(self, step: int) -> Batch:
        stage = self.settings.stage(step)
        return self.batches.batch(self.settings.seed, step, stage.looks, stage.twins)

    def _learn(self, batch: Batch) -> dict[str, float]:
        import torch

        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.rate(self.step)
        losses, right = self._losses(batch, self.settings.stage(self.step))
        self.optimizer.zero_grad()
        torch.autograd.backward(torch.stack(list(losses.values())).sum())
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.optimizer.step()
        return {name: float(value.detach()) for name, value in (losses | {"right": right}).items()}

    def _losses(
        self, batch: Batch, stage: Stage
    ) -> tuple[dict[str, "torch.Tensor"], "torch.Tensor"]:
        """The weighted losses, and the share of query tokens that were found on their page."""
        import torch

        from launch.page_reader.losses import located, pooled

        with torch.autocast("cpu", torch.bfloat16):
            queries = self.model(**batch.queries).float()
            pages = self.model(**batch.pages).float()
        image = batch.pages["mm_token_type_ids"] == 1
        losses = {}
        if stage.characters:
            hidden = self.hidden.float()[image].view(*batch.tokens.shape[:2], -1)
            losses["characters"] = stage.characters * self.head(hidden, batch)
        ids = batch.queries["input_ids"]
        asked = ids >= self.specials
        loss, right = located(queries[asked], ids[asked], pages[image], batch.tokens.flatten(0, 1))
        losses["located"] = stage.located * loss
        if stage.late:
            late = [self.late(part, pages) for part in queries.split(len(pages))]
            losses["late"] = stage.late * torch.stack(late).mean()
        if stage.pooled:
            losses["pooled"] = stage.pooled * pooled(queries, pages)
        return losses, right

    def _line(self, seen: list[dict[str, float]], took: float) -> str:
        names = sorted({name for one in seen for name in one})
        means = {n: [one[n] for one in seen if n in one] for n in names}
        values = " ".join(f"{n} {sum(v) / len(v):.3f}" for n, v in means.items())
        left = (self.settings.steps - self.step) * took / 60
        return (
            f"step {self.step}/{self.settings.steps} {values} {took:.2f} s/step {left:.0f} min left"
        )

    def save(self) -> None:
        import torch

        self.output.mkdir(parents=True, exist_ok=True)
        parts = {
            "model": self.model.state_dict(),
            "head": self.head.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
        }
        torch.save(parts, self.output / "state.new")
        (self.output / "state.new").replace(self.output / STATE)
        self.export()

    def resume(self) -> None:
        import torch

        parts = torch.load(self.output / STATE, weights_only=True)
        self.model.load_state_dict(parts["model"])
        self.head.load_state_dict(parts["head"])
        self.optimizer.load_state_dict(parts["optimizer"])
        self.step = parts["step"]

    def export(self) -> None:
        """Write the model in bfloat16 and its processor, as any ColQwen2 is saved."""
        import torch
        from colpali_engine.models import ColQwen2

        shipped = ColQwen2(type(self.model.config).from_dict(self.model.config.to_dict()))
        shipped.load_state_dict(self.model.state_dict())
        shipped.to(torch.bfloat16).save_pretrained(self.output)
        self.processor.save_pretrained(self.output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=Path("runs/page-reader"))
    parser.add_argument("--resume", action="store_true")
    arguments = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    log.setLevel(logging.INFO)
    training = Training(Settings(), arguments.output)
    if arguments.resume:
        training.resume()
    training.run()


if __name__ == "__main__":
    main()
