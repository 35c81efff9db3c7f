"""A run whose adapter does not train ends with an error, not with a result."""

import logging
from typing import Any

from transformers import TrainerCallback

logger = logging.getLogger(__name__)


class FrozenAdapterError(RuntimeError):
    """The adapter does not train; going on would end with a finished run that learnt nothing."""


class AdapterGuard(TrainerCallback):  # type: ignore[misc]
    """Stops a run whose adapter cannot learn: loaded frozen, wrapped twice, not in the optimizer.

    Before the first step the trainable LoRA weights must be in the optimizer. In every step a
    gradient must reach them, and in the first one with a learning rate above 0 and a gradient other
    than 0 one of them must change. Where weights are sharded, the optimizer holds pieces instead,
    and the first and the second check are left out.
    """

    def __init__(self) -> None:
        self._before: dict[str, Any] | None = None
        self.proved = False

    def on_train_begin(
        self,
        args: Any,
        state: Any,
        control: Any,
        model: Any = None,
        optimizer: Any = None,
        **_: Any,
    ) -> None:
        """Look for trainable adapter weights, and for them in the optimizer."""
        weights = _adapter(model)
        if not weights:
            raise FrozenAdapterError(
                "no LoRA weight is trainable: the adapter was loaded frozen; start from it with "
                "`model.adapter`, which loads it for training"
            )
        if _sharded(args) or optimizer is None:
            return
        held = {id(weight) for group in optimizer.param_groups for weight in group["params"]}
        strange = [name for name, weight in weights.items() if id(weight) not in held]
        if strange:
            raise FrozenAdapterError(
                f"{len(strange)} of {len(weights)} trainable LoRA weights are not in the "
                f"optimizer, such as {strange[0]}: the model was wrapped again after it was made"
            )

    def on_pre_optimizer_step(
        self,
        args: Any,
        state: Any,
        control: Any,
        model: Any = None,
        optimizer: Any = None,
        **_: Any,
    ) -> None:
        """Remember the adapter if this step has to change it."""
        if self.proved:
            return
        weights = _adapter(model)
        gradients = [weight.grad for weight in weights.values() if weight.grad is not None]
        if not gradients and not _sharded(args):
            raise FrozenAdapterError(
                f"step {state.global_step + 1}: no gradient reaches the LoRA weights; the loss "
                "does not go through this adapter"
            )
        rate = max((group["lr"] for group in optimizer.param_groups), default=0.0)
        # A step with an infinite gradient is skipped where a loss scale is in use (float16).
        finite = all(bool(gradient.isfinite().all()) for gradient in gradients)
        if rate > 0 and finite and any(bool(gradient.any()) for gradient in gradients):
            self._before = {name: weight.detach().clone() for name, weight in weights.items()}

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Compare the adapter with what it was."""
        if self._before is None:
            return
        before, self._before = self._before, None
        if all(bool((weight == before[name]).all()) for name, weight in _adapter(model).items()):
            raise FrozenAdapterError(
                f"step {state.global_step} left every LoRA weight as it was, although there was a "
                "gradient: the optimizer holds other weights than the model uses"
            )
        self.proved = True

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Say so if nothing was learnt."""
        if not self.proved and not _sharded(args):
            logger.warning(
                "no step changed the adapter: in every step the learning rate was 0, or the "
                "rewards within each group were equal"
            )


def _adapter(model: Any) -> dict[str, Any]:
    return {n: w for n, w in model.named_parameters() if "lora_" in n and w.requires_grad}


def _sharded(args: Any) -> bool:
    return bool(args.fsdp) or args.deepspeed_plugin is not None
