"""Messages of every shape that services, clients and exports have, and what each says: the same by every way in."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from schemas.fields import MAX_CONTENT_BYTES

CITE: Final = "\ue200cite\ue202turn0search1\ue202turn2view0\ue201"
TURKU: Final = '\ue200entity\ue202["city","Turku","city in Finland"]\ue201'
CALLS: Final[list[dict[str, Any]]] = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
HARMONY: Final = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Tea.<|return|>"


class Said(NamedTuple):
    role: str
    words: str


class Refused(NamedTuple):
    """`why` is part of what is said of it."""

    why: str


NOTHING: Final = None
"""No message: there are no words."""


def _text(text: object, kind: str = "text") -> dict[str, Any]:
    return {"type": kind, "text": text}


def _of(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **fields}


_ROW: Final = Said("user", "I row")
_TEA: Final = Said("assistant", "Tea it is.")
_LONG: Final = "x" * MAX_CONTENT_BYTES
_CONTENT: Final = Refused("content")

SHAPES: Final[list[tuple[dict[str, Any], Said | Refused | None]]] = [
    # texts and roles
    (_of("user", "I row"), _ROW),
    (_of("assistant", "Tea it is."), _TEA),
    (_of("system", "Be kind"), Said("system", "Be kind")),
    (_of("developer", "Be kind"), Said("system", "Be kind")),
    (_of("tool", "12 °C", tool_call_id="c1"), Said("tool", "12 °C")),
    (_of("function", "12 °C", name="weather"), Said("tool", "12 °C")),
    (_of("user", "  I row\n"), Said("user", "  I row\n")),
    (_of("user", "我每周日划船"), Said("user", "我每周日划船")),
    (_of("user", _LONG), Said("user", _LONG)),
    (_of("user", "记" * (MAX_CONTENT_BYTES // 3)), Said("user", "记" * (MAX_CONTENT_BYTES // 3))),
    # parts
    (_of("user", [_text("I row")]), _ROW),
    (_of("user", ["I row"]), _ROW),
    (_of("user", _text("I row")), _ROW),
    (_of("user", {"text": "I row"}), _ROW),
    (_of("user", ["I row", _text("on Sundays")]), Said("user", "I row\non Sundays")),
    (_of("user", [_text(" I row "), _text("  ")]), _ROW),
    (_of("user", [_text("I row", "input_text"), {"type": "input_image", "image_url": "x"}]), _ROW),
    (_of("user", [{"type": "image_url", "image_url": {"url": "x"}}, _text("I row")]), _ROW),
    (_of("user", [{"type": "input_audio", "input_audio": {"data": "x"}}, _text("I row")]), _ROW),
    (_of("assistant", [{**_text("Tea it is.", "output_text"), "annotations": []}]), _TEA),
    (_of("assistant", [_text({"value": "Tea it is.", "annotations": []})]), _TEA),
    (_of("assistant", [_text("Tea it is."), {"type": "tool_use", "id": "t", "name": "f", "input": {}}]), _TEA),
    (_of("assistant", [{"type": "thinking", "thinking": "hm"}, _text("Tea it is.")]), _TEA),
    (_of("assistant", [_text("hm", "reasoning"), _text("Tea it is.")]), _TEA),
    (_of("assistant", [{"thought": True, "text": "hm"}, {"text": "Tea it is."}]), _TEA),
    (_of("user", [7, _text("I row")]), _ROW),
    (_of("user", [{"type": ["text"], "text": "I row"}]), _ROW),
    # no words
    (_of("assistant", None, tool_calls=CALLS), NOTHING),
    ({"role": "assistant", "tool_calls": CALLS}, NOTHING),
    (_of("assistant", None, function_call={"name": "f", "arguments": "{}"}), NOTHING),
    (_of("assistant", "", tool_calls=CALLS), NOTHING),
    (_of("assistant", None), NOTHING),
    (_of("user", ""), NOTHING),
    (_of("user", " \n\t"), NOTHING),
    (_of("user", "\u3000"), NOTHING),
    (_of("user", []), NOTHING),
    (_of("user", [{"type": "image_url", "image_url": {"url": "x"}}]), NOTHING),
    (_of("user", [_text(""), _text(None)]), NOTHING),
    (_of("user", [{"type": "tool_result", "tool_use_id": "t", "content": "12"}]), NOTHING),
    (_of("assistant", "<think>hm</think>"), NOTHING),
    (_of("assistant", "<think>and then it was cut"), NOTHING),
    (_of("assistant", CITE), NOTHING),
    # thoughts
    (_of("assistant", "<think>they want tea</think>\n\nTea it is."), _TEA),
    (_of("assistant", "\n <thinking>a</thinking> <think>b</think>Tea it is."), _TEA),
    (_of("assistant", "<Reasoning>\nline\n</reasoning>\nTea it is."), _TEA),
    (_of("assistant", [_text("<think>hm</think>Tea it is.")]), _TEA),
    (_of("assistant", HARMONY), Said("assistant", "Tea.")),
    (_of("assistant", "Use <think> in HTML"), Said("assistant", "Use <think> in HTML")),
    (_of("assistant", "<b>Tea</b> it is."), Said("assistant", "<b>Tea</b> it is.")),
    (_of("user", "<think>is a tag</think>"), Said("user", "<think>is a tag</think>")),
    # marks of citations, halves of surrogate pairs
    (_of("assistant", f"It rains{CITE}."), Said("assistant", "It rains.")),
    (_of("assistant", f"{TURKU} is cold.{CITE}"), Said("assistant", "Turku is cold.")),
    (_of("assistant", "It says so【4:0†source】."), Said("assistant", "It says so.")),
    (_of("user", "【重要】明天开会"), Said("user", "【重要】明天开会")),
    (_of("user", "tea \ud83d"), Said("user", "tea \ufffd")),
    (_of("user", "\ude00 tea"), Said("user", "\ufffd tea")),
    (_of("user", [_text("tea \ud83d!")]), Said("user", "tea \ufffd!")),
    (_of("user", "tea \ud83d\ude00"), Said("user", "tea \U0001f600")),
    # what cannot be read
    (_of("robot", "I row"), Refused("role")),
    (_of("User", "I row"), Refused("role")),
    ({"content": "I row"}, Refused("role")),
    ({"role": "user"}, _CONTENT),
    ({"role": "user", "text": "I row"}, _CONTENT),
    (_of("user", 7), _CONTENT),
    (_of("user", True), _CONTENT),
    (_of("user", {"value": "I row"}), _CONTENT),
    (_of("user", [7]), _CONTENT),
    (_of("user", [{}]), _CONTENT),
    (_of("user", [{"type": {"a": []}}]), _CONTENT),
    (_of("user", [_text(7)]), _CONTENT),
    (_of("user", [_text({"words": "I row"})]), _CONTENT),
    (_of("user", _LONG + "x"), Refused("32768 bytes")),
    (_of("user", [_text("记" * (MAX_CONTENT_BYTES // 3 + 1))]), Refused("32768 bytes")),
]
