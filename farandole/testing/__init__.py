"""For users' tests: `deliver` runs a handler without Kafka, `running_flow` a whole flow on it, `check_projection` folds its
events every way, `FakeMessages` is a model's API and `MailSink` a mail server; the plug-in brings a stack."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farandole.testing.delivery import deliver
    from farandole.testing.flow import running_flow
    from farandole.testing.mail_sink import MailSink
    from farandole.testing.messages import FakeMessages
    from farandole.testing.projections import check_projection

#: What is here, and the module it is in: pytest loads this package in every run, and what is behind these names is heavy.
_HOMES = {
    "FakeMessages": "messages",
    "MailSink": "mail_sink",
    "check_projection": "projections",
    "deliver": "delivery",
    "running_flow": "flow",
}

__all__ = ["FakeMessages", "MailSink", "check_projection", "deliver", "running_flow"]


def __getattr__(name: str) -> Any:
    """On first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"farandole.testing.{_HOMES[name]}"), name)
