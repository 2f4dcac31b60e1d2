"""For users' tests: `deliver` runs a handler without Kafka; `running_flow` and the pytest fixtures use a real stack."""

from typing import TYPE_CHECKING, Any

from farandole.testing.deliver import deliver

if TYPE_CHECKING:
    from farandole.testing.flow import running_flow

__all__ = ["deliver", "running_flow"]


def __getattr__(name: str) -> Any:
    if name != "running_flow":
        raise AttributeError(f"module 'farandole.testing' has no attribute {name!r}")
    from farandole.testing.flow import running_flow  # pulls in the schema and topic code, which the plug-in must not

    return running_flow
