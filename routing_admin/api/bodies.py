"""What every body of a call is read as: JSON of exactly the types its schema names."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Body(BaseModel):
    """A JSON object; nothing is taken for something else, `false` not for 0 and `"7"` not for 7.

    Keys that no field has are passed over, as the files' are. The framework's own schemas read any value that has
    attributes, so that a string or a list would be an object without fields.
    """

    model_config = ConfigDict(strict=True)
