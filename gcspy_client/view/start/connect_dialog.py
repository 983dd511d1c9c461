"""The dialog that asks where to connect to."""

from __future__ import annotations

from gcspy_protocol.address import Address, UnixAddress, parse_address
from gcspy_protocol.errors import CommandError
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.view.plain.text import set_window_title
from gcspy_client.view.plain.widgets import PlainLabel, PlainLineEdit
from gcspy_client.view.widgets.check_box import CheckBox

__all__ = ["ConnectDialog"]


class ConnectDialog(QDialog):
    """Asks for an address, a token and whether to control.

    Args:
        address: Initial address.
    """

    def __init__(self, address: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_window_title(self, "Connect to a session")
        self.setMinimumWidth(480)
        self.place = PlainLineEdit(address)
        self.place.setPlaceholderText("unix:/PATH   HOST:PORT   tls:HOST:PORT#sha256=…")
        self.token = PlainLineEdit()
        self.token.setEchoMode(PlainLineEdit.EchoMode.Password)
        self.token.setPlaceholderText("for TCP and TLS, as the server printed it")
        self.control = CheckBox("Control the session if it has no controller")
        self.control.setChecked(True)
        self._problem = PlainLabel()
        self._problem.setProperty("tone", "error")
        self._problem.setWordWrap(True)
        for field in (self.place, self.token):
            field.setMinimumHeight(field.fontMetrics().height() + 14)
        form = QFormLayout()
        form.setSpacing(9)
        form.addRow(PlainLabel("Address"), self.place)
        form.addRow(PlainLabel("Token"), self.token)
        form.addRow(PlainLabel(""), self.control)
        self._buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        connect = self._buttons.addButton("Connect", QDialogButtonBox.ButtonRole.AcceptRole)
        connect.setProperty("primary", "true")
        self._buttons.accepted.connect(self._try)
        self._buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 16, 18, 14)
        column.setSpacing(12)
        column.addLayout(form)
        column.addWidget(self._problem)
        column.addWidget(self._buttons)
        self._problem.hide()
        self._address: Address | None = None

    @property
    def address(self) -> Address | None:
        """The address, once the dialog was accepted."""
        return self._address

    def _try(self) -> None:
        try:
            self._address = parse_address(self.place.text().strip())
        except CommandError as error:
            self._say(str(error))
            return
        if not isinstance(self._address, UnixAddress) and not self.token.text():
            self._say(
                "TCP and TLS need the token that the server printed, or that is in its token file."
            )
            return
        self.accept()

    def _say(self, problem: str) -> None:
        self._problem.setText(problem)
        self._problem.show()
        self.adjustSize()
