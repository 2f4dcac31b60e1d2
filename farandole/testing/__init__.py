"""For users' tests: `deliver` runs a handler without Kafka, `running_flow` a whole flow on it; the plug-in brings a stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farandole.testing.delivery import deliver
    from farandole.testing.flow import running_flow

__all__ = ["deliver", "running_flow"]


def __getattr__(name: str) -> Any:
    """On first use: pytest loads this package in every run, and what is behind these names imports vendor libraries."""
    if name == "deliver":
        from farandole.testing.delivery import deliver

        return deliver
    if name == "running_flow":
        from farandole.testing.flow import running_flow

        return running_flow
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
