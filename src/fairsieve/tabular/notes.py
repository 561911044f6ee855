"""Sentences about a table that know what they are about."""

from __future__ import annotations

from typing import Any, Literal

__all__ = ["Note", "NoteKind", "note_kind"]

NoteKind = Literal["leak", "few", "warning", "remark"]


class Note(str):
    """A sentence about a table, of a kind by which it is chosen and sorted.

    Attributes
    ----------
    kind : {"leak", "few", "warning", "remark"}
        A column that duplicates the label; groups with too few people to measure; what a reader must not miss;
        anything else.

    Examples
    --------
    >>> note = Note("Column 'code' duplicates the label.", "leak")
    >>> note.kind, note_kind("Rows without a label, left out: 3.")
    ('leak', 'remark')
    """

    __slots__ = ("kind",)
    kind: NoteKind

    def __new__(cls, text: str, kind: NoteKind = "remark") -> Note:
        """Make a note of a text."""
        note = super().__new__(cls, text)
        note.kind = kind
        return note

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.kind


def note_kind(text: str) -> NoteKind:
    """Return the kind of a note; a bare text is a remark."""
    return text.kind if isinstance(text, Note) else "remark"
