"""One message of a chat as a widget: who speaks, the text, and for an answer where it comes from, its citations and its figures."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app import theme, words
from app.chat import modes
from app.chat.body import Body
from app.chat.conversation import Message, MessageId
from app.chat.details import Details

_NAMED_PARTS = 4  # more than these are only counted


class MessageView(QFrame):
    citation_opened = Signal(object, int)  # message id, number of the citation
    copy_asked = Signal(object)
    edit_asked = Signal(object)
    again_asked = Signal(object)
    exact_asked = Signal(object)
    branch_asked = Signal(object)  # id of the sibling to open
    link_opened = Signal(str)

    def __init__(self, message: Message, siblings: list[MessageId], who: str, trial: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="question" if message.role == "user" else "answer")
        self.message = message
        self.setAccessibleName(who)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._who = QLabel(who, objectName="subtitle")
        self._badge = QLabel(self.tr("trial model"), objectName="badge", visible=trial)
        self._badge.setToolTip(
            self.tr("A small model to try Longshelf with. Its answers are often wrong; where it points is still useful.")
        )
        self._body = Body(who, self)
        self._body.cited.connect(lambda number: self.citation_opened.emit(message.id, number))
        self._body.link_opened.connect(self.link_opened)
        self._state = QLabel(wordWrap=True, objectName="quiet", visible=False)
        self._origin = QLabel(wordWrap=True, objectName="quiet", visible=False)
        self._how = QLabel(wordWrap=True, objectName="quiet", visible=False)
        self._sources = QLabel(wordWrap=True, visible=False, textFormat=Qt.TextFormat.RichText)
        self._sources.setTextInteractionFlags(
            Qt.TextInteractionFlag.LinksAccessibleByMouse | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        )
        self._sources.setAccessibleName(self.tr("Citations"))
        self._sources.linkActivated.connect(lambda target: self.citation_opened.emit(message.id, int(target)))
        self._exactly = QToolButton(autoRaise=True, text=self.tr("Answer exactly"), accessibleName=self.tr("Answer exactly"), visible=False)
        self._exactly.setToolTip(self.tr("Ask this question again in Exact mode; this answer stays, on a branch of its own"))
        self._exactly.clicked.connect(lambda: self.exact_asked.emit(message.id))
        self._details: Details | None = None
        self._details_button = QToolButton(autoRaise=True, checkable=True, text=self.tr("Details"), visible=False)
        self._details_button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._details_button.setArrowType(Qt.ArrowType.RightArrow)
        self._details_button.toggled.connect(self.show_details)

        self._layout = QVBoxLayout(self)
        self._layout.addLayout(self._head(siblings))
        for widget in (self._body, self._state, self._origin, self._how, self._sources):
            self._layout.addWidget(widget)
        if message.role == "assistant":
            tools = QHBoxLayout()
            self._tools(tools)
            self._layout.addLayout(tools)
        theme.current().changed.connect(self._show_sources)  # its links carry their colour
        self.refresh()

    @property
    def body(self) -> Body:
        return self._body

    def refresh(self) -> None:
        """Show the message as it now is: complete, stopped, failed or still coming."""
        message = self.message
        pending = message.status == "pending"
        if not pending or message.text:
            self._body.show_text(message.text, message.citations)
        self._body.setVisible(bool(message.text))
        self._say_state(self._state_words())
        if message.role == "assistant" and not pending:
            self._show_origin()
            self._show_how()
            self._show_sources()
            self._details_button.setVisible(message.meta.get("generated_tokens") is not None)
        for button in self._finished_only:
            button.setVisible(not pending)
        self._exactly.setVisible(message.meta.get("mode") == modes.FAST)

    def append(self, text: str) -> None:
        """More of the answer; the message already holds it."""
        if not self._body.isVisibleTo(self):
            self._body.setVisible(True)
        if self._state.isVisibleTo(self):
            self._say_state("")
        self._body.append(text)

    def finish(self) -> None:
        """The answer has come to its end: draw it once whole, and tell screen readers."""
        self.refresh()
        words_of_it = self.message.text or self._state_words()
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, words_of_it))

    def say_phase(self, phase: str) -> None:
        """What the engine is doing until the next word comes."""
        if self.message.status == "pending":
            self._say_state(phase)

    def show_details(self, shown: bool) -> None:
        if self._details is None:
            self._details = Details(self.message.meta, self)
            self._layout.addWidget(self._details)
        self._details.setVisible(shown)
        self._details_button.setArrowType(Qt.ArrowType.DownArrow if shown else Qt.ArrowType.RightArrow)

    def how_text(self) -> str:
        """“Fast: read 12 % of the memory for each word, measured error 6.2 %”; "" under an exact answer."""
        return modes.how_read(self.message.meta)

    def origin_text(self) -> str:
        """“from memory · Chapter 1, Chapter 3 · read 2 of 82 parts”"""
        meta = self.message.meta
        from_memory = self.tr("from memory") if meta.get("document_tokens_prefilled") == 0 else ""
        if reread := meta.get("document_tokens_prefilled"):
            from_memory = self.tr("read for the first time together: {0}").format(words.tokens(reread))
        parts = meta.get("parts_read") or []
        places = [words.stretch(part) for part in parts] if len(parts) <= _NAMED_PARTS else []
        read = ""
        if (meta.get("parts_total") or 0) > 1:
            read = self.tr("read {0} of {1} parts").format(words.number(len(parts)), words.number(meta["parts_total"]))
            if (ready := meta.get("parts_ready") or meta["parts_total"]) < meta["parts_total"]:
                read += self.tr(" ({0} read so far)").format(words.number(ready))
        return words.join(from_memory, ", ".join(dict.fromkeys(filter(None, places))), read)

    def _head(self, siblings: list[MessageId]) -> QHBoxLayout:
        head = QHBoxLayout()
        head.addWidget(self._who)
        head.addWidget(self._badge)
        head.addStretch(1)
        if self.message.role == "user":
            self._tools(head)
        if len(siblings) > 1:
            position = siblings.index(self.message.id)
            previous = _button("previous", self.tr("Previous version"))
            previous.setEnabled(position > 0)
            previous.clicked.connect(lambda: self.branch_asked.emit(siblings[position - 1]))
            following = _button("next", self.tr("Next version"))
            following.setEnabled(position + 1 < len(siblings))
            following.clicked.connect(lambda: self.branch_asked.emit(siblings[position + 1]))
            count = QLabel(f"{position + 1}/{len(siblings)}", objectName="quiet")
            count.setAccessibleName(self.tr("Version {0} of {1}").format(position + 1, len(siblings)))
            for widget in (previous, count, following):
                head.addWidget(widget)
        return head

    def _tools(self, row: QHBoxLayout) -> None:
        """Beside a question copy and edit; under an answer copy, ask again, ask exactly where it was Fast, and its figures."""
        copy = _button("copy", self.tr("Copy"))
        copy.clicked.connect(lambda: self.copy_asked.emit(self.message.id))
        if self.message.role == "user":
            second = _button("edit", self.tr("Edit and ask again"))
            second.clicked.connect(lambda: self.edit_asked.emit(self.message.id))
        else:
            second = _button("again", self.tr("Answer again"))
            second.clicked.connect(lambda: self.again_asked.emit(self.message.id))
        self._finished_only = [copy, second]
        for button in self._finished_only:
            row.addWidget(button)
        if self.message.role == "assistant":
            row.addWidget(self._exactly)
            row.addStretch(1)
            row.addWidget(self._details_button)

    def _state_words(self) -> str:
        match self.message.status:
            case "pending":
                return self.tr("Waiting for the engine…") if not self.message.text else ""
            case "stopped":
                return self.tr("Stopped. The text so far is kept.") if self.message.text else self.tr("Stopped before the first word.")
            case "failed":
                reason = str(self.message.meta.get("reason") or "")
                if reason and reason != "interrupted":
                    return reason
                return self.tr("This answer was interrupted. The question is kept; you can ask it again.")
        if self.message.role == "assistant" and not self.message.text:
            return self.tr("The model gave an empty answer.")
        return ""

    def _say_state(self, text: str) -> None:
        self._state.setText(text)
        self._state.setVisible(bool(text))

    def _show_origin(self) -> None:
        text = self.origin_text()
        if self.message.meta.get("cut"):
            text = words.join(text, self.tr("cut at the length limit"))
        self._origin.setText(text)
        self._origin.setVisible(bool(text))

    def _show_how(self) -> None:
        text, meaning = self.how_text(), modes.meaning(self.message.meta)
        self._how.setText(text)
        self._how.setToolTip(meaning)
        self._how.setAccessibleDescription(meaning)
        self._how.setVisible(bool(text))

    def _show_sources(self) -> None:
        if self.message.role != "assistant" or self.message.status == "pending":
            return
        pieces = []
        if self.message.meta.get("supported") is False:
            pieces.append(f"<b>{escape(self.tr('Not found in these documents.'))}</b>")
            if self.message.citations:
                pieces.append(escape(self.tr("The nearest passages:")))
        link = self.palette().link().color().name()
        for citation in self.message.citations:
            number = citation["number"]
            text = f"[{number}] {words.place(citation)}".strip()
            pieces.append(f'<a href="{number}" style="color: {link}; text-decoration: none">{escape(text)}</a>')
        self._sources.setText("&nbsp;&nbsp; ".join(pieces))
        self._sources.setVisible(bool(pieces))


def _button(icon: str, name: str) -> QToolButton:
    button = QToolButton(autoRaise=True, toolTip=name, accessibleName=name)
    theme.current().wear(button, icon)
    return button
