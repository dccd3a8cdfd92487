"""Notebook widget of the explorer, an anywidget for one `Session`; it requires the extra `fairopt[notebook]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from .page import module, style

if TYPE_CHECKING:
    from ...result.allocation import Allocation
    from .session import Session


class Explorer(anywidget.AnyWidget):
    """Widget of `fo.explore`; `allocation` and `cluster` follow the displayed state."""

    _esm = module()
    _css = style()
    host = traitlets.Unicode("live").tag(sync=True)
    start = traitlets.Dict().tag(sync=True)

    def __init__(self, session: Session) -> None:
        self.session = session
        super().__init__(start=session.begin())
        self.on_msg(self._asked)

    @property
    def allocation(self) -> Allocation:
        """Certified allocation of the displayed state."""
        return self.session.allocation()

    @property
    def cluster(self) -> Any:
        """Cluster with the edits of the displayed state."""
        return self.session.edited(self.session.last).cluster

    def _asked(self, _: Any, content: Any, __: Any) -> None:
        """Answer a request of the page; ignore other messages."""
        if isinstance(content, dict) and {"id", "question"} <= {*content}:
            self.send({"id": content["id"], "reply": self.session.reply(content["question"])})
