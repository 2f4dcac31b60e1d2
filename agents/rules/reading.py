"""What `enrich` asks: the mail read for what it names and what it wants."""

from pydantic import BaseModel, Field

from schemas.jobs import Entities


class Reading(BaseModel, frozen=True):
    """The answer to "what is in this mail?"."""

    entities: Entities
    summary: str = Field(
        "", max_length=1000, description="what the sender wants, in one to three sentences, in English"
    )
