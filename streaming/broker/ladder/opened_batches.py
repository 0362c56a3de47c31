"""What opened batches have shown, and which are too large to open: the same question is asked again and again, with the same answer."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable

from streaming.broker.ladder.stretch import Stretch
from streaming.errors import TooLargeError

MOST_ANSWERS = 4096
"""How many answers are remembered; the one that was not asked for longest is forgotten."""

log = logging.getLogger(__name__)

Answer = tuple[int, int]
"""Two numbers, by the question."""

_Key = tuple[object, ...]


class OpenedBatches:
    """Any thread may call it. ``refused``: how many answers were not given, because a batch is too large to be opened so far."""

    def __init__(self) -> None:
        self._answers: OrderedDict[_Key, Answer | str] = OrderedDict()
        self._lock = threading.Lock()
        self.refused = 0

    def ask(self, stretch: Stretch, item: int, question: tuple[str, int], answer: Callable[[], Answer]) -> Answer:
        """The answer to a question about a batch of a stretch, by ``answer`` the first time.

        Raises:
            TooLargeError: the batch is too large; without trying again.
            FormatError, OSError: as ``answer`` raises them. These are not remembered: another attempt may succeed.
        """
        key = (stretch.identity_of(item), question)
        with self._lock:
            known = self._answers.get(key)
            if known is not None:
                self._answers.move_to_end(key)
        if known is None:
            try:
                known = answer()
            except TooLargeError as error:
                known = error.what
                position = int(stretch.positions[item])
                extra = {"path": str(stretch.segment.path), "position": position, "what": known}
                log.warning("a batch is too large to be opened for a time: it is not known", extra=extra)
            self._remember(key, known)
        if isinstance(known, str):
            raise TooLargeError(known)
        return known

    def _remember(self, key: _Key, answer: Answer | str) -> None:
        with self._lock:
            if key not in self._answers:
                self.refused += isinstance(answer, str)
            self._answers[key] = answer
            while len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)
