"""Convert conversations of ChatGPT's export, `conversations.json`.

A conversation is a tree of messages, because ChatGPT can generate an answer again:

    {"id": …, "create_time": 1714564800.1, "current_node": "b", "mapping": {
        "a": {"parent": null, "message": null}, "b": {"parent": "a", "message": {"author": {"role": "user"}, …}}}}

Only the messages on the path from the root to `current_node` are imported, because ChatGPT last showed these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from schemas.conversations import Role
from streams.doors.importing.chats import Chat, Turn, first_moment, misshapen, moment, text_id, text_of

#: Content types that ChatGPT shows as text. Other types are thoughts, searches, executed code and its output.
_SAID: Final = ("text", "multimodal_text")
_ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT}


def is_chatgpt(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("mapping"), dict)


def chat_of(value: Mapping[str, Any]) -> Chat:
    """Convert a conversation to a chat with the messages that ChatGPT last showed.

    Raises `BadRecord` if the tree of messages is invalid.
    """
    if not is_chatgpt(value):
        raise misshapen("it has no mapping of messages")
    messages = [node["message"] for node in _path(value) if isinstance(node.get("message"), dict)]
    identity = text_id(value.get("conversation_id")) or text_id(value.get("id"))
    return Chat.of(messages, _turn, identity, first_moment(value, "create_time", "update_time"))


def _path(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the nodes of the conversation's tree on the path from the root to `current_node`."""
    mapping, name = value["mapping"], value.get("current_node")
    nodes = {key: node for key, node in mapping.items() if isinstance(node, dict)}
    if not isinstance(name, str) or name not in nodes:
        name = _newest_leaf(nodes) if nodes else None
    path: list[Mapping[str, Any]] = []
    seen = set()
    while isinstance(name, str) and name in nodes:  # the root has no parent in the export
        if name in seen:
            raise misshapen(f"its tree has a cycle at node {name[:100]!r}: export the chats again")
        seen.add(name)
        path.append(nodes[name])
        name = nodes[name].get("parent")
    return path[::-1]


def _newest_leaf(nodes: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the leaf of the tree with the newest message. It replaces a missing or invalid `current_node`."""
    parents = {parent for node in nodes.values() if isinstance(parent := node.get("parent"), str)}
    leaves = [name for name in nodes if name not in parents]
    if not leaves:
        raise misshapen("its tree has no leaf: export the chats again")

    def written(name: str) -> int:
        message = nodes[name].get("message")
        return (moment(message.get("create_time")) if isinstance(message, dict) else None) or 0

    return max(leaves, key=written)


def _turn(place: int, message: Mapping[str, Any]) -> Turn | None:
    """Convert a message. Returns None if it has no text, or if ChatGPT does not show it.

    System prompts, custom instructions, tool calls and their results are not shown.
    """
    author, content = message.get("author"), message.get("content")
    metadata = message.get("metadata")
    if not isinstance(author, dict) or not isinstance(content, dict):
        return None
    role = _ROLES.get(str(author.get("role")))
    hidden = isinstance(metadata, dict) and bool(metadata.get("is_visually_hidden_from_conversation"))
    if role is None or hidden or message.get("weight") == 0 or message.get("recipient", "all") != "all":
        return None
    parts = content.get("parts")
    shown = content.get("content_type", "text") in _SAID and isinstance(parts, list)
    text = text_of(parts, role, place) if shown else ""
    if not text:
        return None
    return Turn(place, role, text, moment(message.get("create_time")), text_id(message.get("id")))
