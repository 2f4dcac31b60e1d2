"""How long events are kept: partitions made ahead, jobs forgotten by policy, and what that costs in bytes."""

from farandole.retention.policy import forgot_anything

__all__ = ["forgot_anything"]
