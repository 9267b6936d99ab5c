"""The thread that calls a FetchHandler during a pass over a Dataset."""
import threading


class HandlerThread:
    """Thread that calls a FetchHandler periodically with the latest values during training."""

    def __init__(self, handler):
        self._handler = handler
        self._changed = threading.Condition()
        self._values = None
        self._due = self._ended = False
        self._error = None
        self._thread = threading.Thread(target=self._main, name="anabranch fetch handler", daemon=True)
        self._thread.start()

    def is_due(self):
        """Whether the handler needs values now. Reraises an exception of the handler."""
        if self._error is not None:
            raise self._error
        return self._due

    def give(self, values):
        """Passes newer values to the thread."""
        with self._changed:
            self._values = values
            self._changed.notify_all()

    def end(self):
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._thread.join()

    def _main(self):
        with self._changed:
            while not self._ended:
                self._changed.wait_for(lambda: self._ended, self._handler.period_secs)
                if self._ended:
                    return
                self._due, self._values = True, None
                self._changed.wait_for(lambda: self._ended or self._values is not None)
                values, self._due = self._values, False
                if values is None:
                    return
                self._changed.release()
                try:
                    self._handler.handler(values)
                except BaseException as e:
                    self._error = e
                finally:
                    self._changed.acquire()
