"""The content of a daily summary. Every item names its source messages."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

#: The maximum length of a topic's title, which is a line in a list that people skim.
TITLE_CHARS = 50
MOST_TOPICS, FEWEST_TOPICS = 5, 3


class _Item(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    sources: tuple[str, ...] = Field(description="ids of the messages that say so")


class Topic(_Item):
    """A topic of the conversation, and its turns (the day's first one is 1)."""

    title: Annotated[str, Field(description=f"at most {TITLE_CHARS} characters")]
    turns: tuple[int, ...] = ()


class Preference(_Item):
    """What the user likes or wants: stated by the user, or `observed` in repeated choices."""

    text: str
    observed: bool = False


class Decision(_Item):
    """A decision and its reason; `technical` if a model, a tool or a method was chosen."""

    text: str
    reason: str = ""
    technical: bool = False


class Todo(_Item):
    """An open task, verb first; `inferred` if no message calls it one."""

    text: str
    when: Annotated[str, Field(description="as it was said: tomorrow, 周五下午三点")] = ""
    inferred: bool = False


class Problem(_Item):
    """A technical problem, and its solution if one was found or proposed."""

    text: str
    solution: str = ""


class Insight(_Item):
    """A fact worth knowing tomorrow that is in no other section."""

    text: str


class Summary(BaseModel):
    """The six sections of a summary, in their order; any of them may be empty."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    topics: tuple[Topic, ...] = ()
    preferences: tuple[Preference, ...] = ()
    decisions: tuple[Decision, ...] = ()
    todos: tuple[Todo, ...] = ()
    problems: tuple[Problem, ...] = ()
    insights: tuple[Insight, ...] = ()
