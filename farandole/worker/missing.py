"""Whether a commit fails because a topic is not there, which a person must hear of in plain words."""

from __future__ import annotations

from collections.abc import Iterable

from farandole import topics
from farandole.errors import Unreachable
from farandole.settings import Settings
from farandole.worker.outputs import Output


def missing_topic(settings: Settings, outputs: Iterable[Output]) -> Unreachable | None:
    """What is to be said, and waited for, when one of the topics that are written to is missing. None when none is, or
    when the broker does not answer."""
    try:
        missing = topics.missing(settings, {settings.bare(output.topic) for output in outputs})
    except Unreachable:
        return None
    if not missing:
        return None
    return Unreachable(
        f"topic {settings.topic(missing[0])} is missing: nothing is committed, no offset moves until it is there; "
        "`farandole topics` creates it"
    )
