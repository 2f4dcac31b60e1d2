"""For users' tests: `deliver` runs a handler without Kafka, `running_flow` a flow on it, `FakeMessages` plays the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farandole.testing.delivery import deliver
    from farandole.testing.flow import running_flow
    from farandole.testing.messages import FakeMessages

__all__ = ["FakeMessages", "deliver", "running_flow"]


def __getattr__(name: str) -> Any:
    """On first use: pytest loads this package in every run, and what is behind these names imports vendor libraries."""
    if name == "deliver":
        from farandole.testing.delivery import deliver

        return deliver
    if name == "running_flow":
        from farandole.testing.flow import running_flow

        return running_flow
    if name == "FakeMessages":
        from farandole.testing.messages import FakeMessages

        return FakeMessages
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
