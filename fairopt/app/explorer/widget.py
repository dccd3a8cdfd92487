"""The explorer in a notebook: an anywidget, whose Python side is a `Session`. Of the extra `fairopt[notebook]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from .page import module, style

if TYPE_CHECKING:
    from ...result.allocation import Allocation
    from .session import Session


class Explorer(anywidget.AnyWidget):
    """The widget of `fo.explore`. `allocation` and `cluster` are those that are shown when they are asked for."""

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
        """The certified answer at the state that is shown."""
        return self.session.allocation()

    @property
    def cluster(self) -> Any:
        """The cluster as it is edited."""
        return self.session.edited(self.session.last).cluster

    def _asked(self, _: Any, content: Any, __: Any) -> None:
        """Answer a question of the view; what is no question is left alone."""
        if isinstance(content, dict) and {"id", "question"} <= {*content}:
            self.send({"id": content["id"], "reply": self.session.reply(content["question"])})
