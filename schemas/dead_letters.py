"""The headers of a dead letter (a record that cannot be used): the record's source, and the error."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class DeadLetter(BaseModel):
    """The headers of a record in `dead-letters`; its value and key are the original bytes."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    source_topic: str = Field(alias="source.topic")
    source_partition: int = Field(alias="source.partition")
    source_offset: int = Field(alias="source.offset")
    error_type: str = Field(alias="error.type")
    error_message: str = Field(alias="error.message")
    failed_at: str = Field(alias="failed.at")

    def headers(self) -> list[tuple[str, bytes]]:
        return [(name, str(value).encode()) for name, value in self.model_dump(by_alias=True).items()]
