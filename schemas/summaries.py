"""What a summary of a user's day holds. Every item names the messages that it comes from."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

#: A title is a line of a list that one skims.
TITLE_CHARS = 50
MOST_TOPICS, FEWEST_TOPICS = 5, 3


class _Item(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    sources: tuple[str, ...] = Field(description="ids of the messages that say so")


class Topic(_Item):
    """What was talked about, and in which turns (the first one of the day is 1)."""

    title: Annotated[str, Field(description=f"at most {TITLE_CHARS} characters")]
    turns: tuple[int, ...] = ()


class Preference(_Item):
    """What the user likes or wants: said in so many words, or `observed` in what they chose again and again."""

    text: str
    observed: bool = False


class Decision(_Item):
    """What was decided and why; `technical` where a model, a tool or a method was chosen."""

    text: str
    reason: str = ""
    technical: bool = False


class Todo(_Item):
    """A task that is not done yet, verb first; `inferred` where no message calls it one."""

    text: str
    when: Annotated[str, Field(description="as it was said: tomorrow, 周五下午三点")] = ""
    inferred: bool = False


class Problem(_Item):
    """A technical problem, and its solution where one was found or proposed."""

    text: str
    solution: str = ""


class Insight(_Item):
    """What is worth knowing tomorrow and stands nowhere else."""

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
