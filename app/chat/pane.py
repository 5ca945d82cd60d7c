"""The chat pane: which documents are asked, the conversation, and the composer. One question is on its way at a time."""

from __future__ import annotations

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMessageBox, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from app.chat import hints, modes
from app.chat.asking import Asking, is_saved
from app.chat.chooser import Chooser
from app.chat.conversation import Conversation, Message, MessageId
from app.chat.message import MessageView
from app.chat.question_box import QuestionBox
from app.chat.transcript import Transcript
from app.commands import Commands
from app.engine_client import Engine
from app.mirror import Mirror
from app.preferences import Preferences
from engine.errors import LongshelfError

AGAIN_TEMPERATURE = 0.7
"""Of another answer to the same question: it is drawn, since the likeliest one is there already."""


class ChatPane(QFrame):
    citation_opened = Signal(list, int)  # all citations of the answer, position of the one wanted
    chat_changed = Signal(str)  # id of the chat on screen, "" for a new one
    trouble = Signal(object)  # LongshelfError

    def __init__(
        self, engine: Engine, mirror: Mirror, commands: Commands, preferences: Preferences, start: QWidget, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent, objectName="paper")
        self._engine = engine
        self._mirror = mirror
        self._commands = commands
        self._preferences = preferences
        self.conversation = Conversation()
        self._asking: Asking | None = None
        self._offered: list[str] = []
        self._branch_from: Message | None = None  # the earlier question that is being edited

        commands.fast.setChecked(preferences.mode == modes.FAST)
        self.chooser = Chooser(mirror, self)
        self.chooser.changed.connect(self._say_hint)
        self.transcript = Transcript(self)
        self._stack = QStackedWidget()
        self._stack.addWidget(start)
        self._stack.addWidget(self.transcript)
        self.box = QuestionBox(commands, self)
        self.box.cancelled.connect(self._cancel_edit)
        self.composer = self.box.composer
        self.composer.submitted.connect(self.send)

        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._header())
        layout.addWidget(self._stack, 1)
        layout.addWidget(self.box)
        self._connect()
        self.composer.setPlainText(preferences.draft)
        self._show_conversation()

    @property
    def asking(self) -> Asking | None:
        """The question on its way, of this chat or of another."""
        return self._asking

    @property
    def mode(self) -> str:
        """How the next question is answered."""
        return modes.FAST if self._commands.fast.isChecked() else modes.EXACT

    def offer(self, documents: list[str]) -> None:
        """A chat is under way, and these documents were looked at meanwhile: the next new chat is about them."""
        self._offered = documents

    def new_chat(self, documents: list[str] | None = None) -> None:
        """An empty chat about these documents, else about those offered last, else about those chosen now."""
        documents = documents or self._offered
        self._offered = []
        if documents:
            self.chooser.choose(documents)
        self._show(Conversation(documents=self.chooser.documents))
        self.composer.setFocus()

    def open_chat(self, chat: str) -> None:
        if chat == self.conversation.id:
            return
        if self._asking is not None and self._asking.conversation.id == chat:
            self._show(self._asking.conversation)  # it is ahead of what is saved
            return
        self._engine.request("chats.show", {"id": chat}, done=lambda shown: self._show(Conversation.of(shown)), failed=self._on_unopened)

    def close_chat(self, chat: str) -> None:
        """The chat was deleted."""
        if chat == self.conversation.id:
            self.new_chat()

    def ask(self, question: str) -> None:
        """Ask as if it had been typed."""
        self.composer.setPlainText(question)
        self.composer.submit()

    def send(self, question: str) -> None:
        """Ask what was typed; if that isn't possible now, say why and keep the text."""
        if obstacle := self._obstacle():
            self.box.tell(obstacle)
            return
        if self._branch_from is not None:
            parent = self._branch_from.parent_id
        else:
            saved = [message for message in self.conversation.path() if is_saved(message)]
            parent = saved[-1].id if saved else None
        self.composer.clear()
        self._branch_from = None
        self._ask(question, parent, self.mode)

    def stop(self) -> None:
        if self._asking is not None:
            self._asking.stop()

    def regenerate(self, answer: MessageId | None = None) -> None:
        """Ask a question again: its earlier answer stays, on a branch of its own."""
        self._answer_again(answer, self.mode, AGAIN_TEMPERATURE)

    def answer_exactly(self, answer: MessageId | None = None) -> None:
        """Ask the question of a Fast answer again in Exact mode."""
        self._answer_again(answer, modes.EXACT)

    def _answer_again(self, answer: MessageId | None, mode: str, temperature: float = 0.0) -> None:
        """The last question, or that of `answer`."""
        message = self.conversation.last_answer if answer is None else self.conversation[answer]
        if message is None or message.parent_id is None:
            return
        if obstacle := self._obstacle():
            self.box.tell(obstacle)
            return
        question = self.conversation[message.parent_id]
        if is_saved(question):
            self._ask(question.text, question.parent_id, mode, question, temperature)
        else:
            self.conversation.discard(question.id)
            self._ask(question.text, question.parent_id, mode)

    def copy(self, message: Message | None) -> None:
        """The model's own text, Markdown as it wrote it."""
        if message is not None:
            QGuiApplication.clipboard().setText(message.text)

    def keep_draft(self) -> None:
        """On closing: what is typed comes back at the next start."""
        unsaved = self._asking.question.text if self._asking is not None and not self._asking.is_saved else ""
        self._preferences.draft = self.composer.toPlainText() or unsaved

    def _header(self) -> QFrame:
        header = QFrame(objectName="paneHeader")
        header.setMinimumHeight(self.fontMetrics().height() * 3)
        new_chat = QToolButton(autoRaise=True, accessibleName=self.tr("New chat"))
        new_chat.setDefaultAction(self._commands.new_chat)
        new_chat.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
        layout = QHBoxLayout(header)
        layout.addWidget(self.chooser)
        layout.addStretch(1)
        layout.addWidget(new_chat)
        return header

    def _connect(self) -> None:
        commands = self._commands
        commands.new_chat.triggered.connect(lambda: self.new_chat())
        commands.focus_question.triggered.connect(self.composer.setFocus)
        commands.choose_documents.triggered.connect(self.chooser.open_list)
        commands.send.triggered.connect(self.composer.submit)
        commands.stop.triggered.connect(self.stop)
        commands.regenerate.triggered.connect(lambda: self.regenerate())
        commands.answer_exactly.triggered.connect(lambda: self.answer_exactly())
        commands.fast.toggled.connect(self._on_mode)
        commands.copy_answer.triggered.connect(lambda: self.copy(self.conversation.last_answer))
        commands.latest.triggered.connect(self.transcript.jump_to_latest)
        commands.stop.setEnabled(False)
        self._mirror.models_changed.connect(lambda _: self._say_model())
        self._mirror.documents_changed.connect(lambda _: self._say_hint())

    def _obstacle(self) -> str:
        """Why nothing can be asked now, "" if something can."""
        if self._asking is not None:
            return self.tr("The last question is still being answered. Esc stops it.")
        return hints.obstacle(self._mirror, self.chooser)

    def _ask(self, question: str, parent: MessageId | None, mode: str, again: Message | None = None, temperature: float = 0.0) -> None:
        self._preferences.draft = question
        chosen = self.chooser
        asking = Asking(self._engine, self.conversation, question, parent, chosen.documents, chosen.all, mode, again, temperature)
        self._asking = asking
        asking.saved.connect(self._on_saved)
        asking.phase.connect(self._on_phase)
        asking.text.connect(self._on_text)
        asking.ended.connect(self._on_ended)
        self._show_conversation()
        self._say_busy()

    def _on_phase(self, phase: str) -> None:
        if (view := self._answer_view()) is not None:
            view.say_phase(phase)

    def _on_text(self, text: str) -> None:
        if (view := self._answer_view()) is not None:
            view.append(text)

    def _answer_view(self) -> MessageView | None:
        """Where the answer under way stands, if its chat is on the screen."""
        asking = self._asking
        on_screen = asking is not None and asking.conversation is self.conversation
        return self.transcript.view_of(asking.answer.id) if asking is not None and on_screen else None

    def _on_saved(self) -> None:
        self._preferences.draft = self.composer.toPlainText()
        if self._asking is not None and self._asking.conversation is self.conversation:
            self.chat_changed.emit(self.conversation.id)

    def _on_ended(self) -> None:
        asking, self._asking = self._asking, None
        self._say_busy()
        if asking is None:
            return
        if asking.error is not None and asking.error.kind != "engine_lost":  # a lost engine is told by the window
            self.trouble.emit(asking.error)
        view = self.transcript.view_of(asking.answer.id) if asking.conversation is self.conversation else None
        if view is not None:
            view.finish()
        self._say_trade()

    def _on_unopened(self, error: LongshelfError) -> None:
        self.chat_changed.emit(self.conversation.id)
        self.trouble.emit(error)

    def _show(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self._branch_from = None
        if conversation.documents or conversation.id:
            self.chooser.choose(conversation.documents, all=not conversation.documents)  # a chat about none is about all
        self._show_conversation()
        self.chat_changed.emit(conversation.id)

    def _show_conversation(self) -> None:
        path = self.conversation.path()
        self.transcript.show_views([self._view(message) for message in path])
        self._stack.setCurrentIndex(1 if path else 0)
        self._say_model()
        self._say_hint()
        self._say_trade()
        self._say_busy()

    def _view(self, message: Message) -> MessageView:
        model = message.meta.get("model") or self.conversation.model or (self._mirror.current_model() or {}).get("name", "")
        answers = message.role == "assistant"
        who = (str(model) or self.tr("Answer")) if answers else self.tr("You")
        trial = answers and bool(self._mirror.models.get(str(model), {}).get("trial"))
        view = MessageView(message, self.conversation.siblings(message.id), who, trial)
        view.citation_opened.connect(self._on_citation)
        view.copy_asked.connect(lambda id: self.copy(self.conversation[id]))
        view.again_asked.connect(self.regenerate)
        view.exact_asked.connect(self.answer_exactly)
        view.edit_asked.connect(self._edit)
        view.branch_asked.connect(self._on_branch)
        view.link_opened.connect(self._on_link)
        return view

    def _on_citation(self, message: MessageId, number: int) -> None:
        citations = self.conversation[message].citations
        for position, citation in enumerate(citations):
            if citation["number"] == number:
                self.citation_opened.emit(citations, position)

    def _on_branch(self, message: MessageId) -> None:
        self.conversation.choose(message)
        self._show_conversation()

    def _on_mode(self, fast: bool) -> None:
        self._preferences.mode = self.mode
        self._say_trade()

    def _edit(self, message: MessageId) -> None:
        self._branch_from = self.conversation[message]
        self.composer.setPlainText(self._branch_from.text)
        self.composer.selectAll()
        self.composer.setFocus()
        self._say_hint()

    def _cancel_edit(self) -> None:
        self._branch_from = None
        self.composer.clear()
        self._say_hint()

    def _on_link(self, target: str) -> None:
        """A link in an answer leads out of this program: only with leave, and never by itself."""
        question = self.tr("Open this address in the web browser?")
        if QMessageBox.question(self, "Longshelf", f"{question}\n\n{target}") is QMessageBox.StandardButton.Yes:
            QDesktopServices.openUrl(QUrl(target))

    def _say_busy(self) -> None:
        busy = self._asking is not None
        self._commands.stop.setEnabled(busy)
        self._commands.regenerate.setEnabled(not busy)
        last = self.conversation.last_answer
        self._commands.answer_exactly.setEnabled(not busy and last is not None and last.meta.get("mode") == modes.FAST)
        self.box.set_busy(busy)

    def _say_model(self) -> None:
        self.box.show_model(self._mirror.current_model() or {})

    def _say_trade(self) -> None:
        self.box.show_trade(hints.trade(self.mode, self.conversation.path()))

    def _say_hint(self) -> None:
        """One quiet line above the composer: what is special about the next question."""
        if self._branch_from is not None:
            self.box.tell(self.tr("Editing an earlier question: it becomes a branch of its own."), self.tr("Cancel"))
            return
        self.box.tell(hints.partly_read(self._mirror, self.chooser))
