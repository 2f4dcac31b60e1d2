"""The projector: folds the flow's topics into Postgres, each event once, whatever is killed when."""

from farandole.projector.service import run_projector

__all__ = ["run_projector"]
