"""Files of the parameters of one epoch, for ``callbacks.BestModel``: of this process, of all workers, or of servers."""
from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from typing import Any

from . import _cluster, _core, fluid
from .fluid import loaded_values
from .fluid.errors import Unavailable
from .fluid.io.remote import save_remote

_EPOCH = re.compile(r"epoch-(\d{6})")


class KeptModel:
    """Files of ``fluid.save``. With parameter servers, a folder with one file for each variable instead.

    Args:
        path (str): prefix of the files, or the folder.
        program (Program): program whose variables are kept; with servers, that of the fleet is used.
        scope (Scope): scope of its variables.
    """

    def __init__(self, path: str, program: Any, scope: Any) -> None:
        self.path, self._program, self._scope = path, program, scope
        self._fleet: Any = None

    def join(self, fleet: Any) -> None:
        """Sets the fleet of this process, or None."""
        self._fleet = fleet

    def on_servers(self) -> bool:
        """bool: whether parameter servers have the variables."""
        return self._fleet is not None and bool(self._role().get_pserver_endpoints())

    def exists(self, epoch: int) -> bool:
        """bool: whether the files of an epoch exist; where they have no number, whether there are any."""
        return os.path.isdir(self._folder(epoch)) if self.on_servers() else os.path.exists(self.path + ".pdparams")

    def save(self, epoch: int) -> None:
        """Writes the files. All workers call it between two steps; the first one writes."""
        if self._fleet is None:
            self._save_here()
        elif self.on_servers():
            _cluster.communicator_flush()
            _cluster.meet(self._role())     # the gradients of all workers are there
            _cluster.by_first_worker(self._role(), "BestModel", lambda: self._save_from_servers(epoch))
        else:
            _cluster.by_first_worker(self._role(), "BestModel", self._save_here)

    def restore(self) -> None:
        """Loads the files into the scope. Servers are left as they are."""
        if self.on_servers():
            return
        if self._fleet is not None and not os.path.exists(self.path + ".pdparams"):
            raise Unavailable("BestModel: %s.pdparams, which the first worker has written, does not exist here: path "
                              "must be in a folder that all workers see" % self.path)
        with fluid.scope_guard(self._scope):
            fluid.load(self._program, self.path)
        loaded_values.forget(self._scope)   # a script may start again after the best epoch

    def export(self, epoch: int, dirname: str, feeds: Sequence[str], targets: Sequence[Any], executor: Any,
               schema: Any) -> None:
        """Writes a model for inference with the values of the files. All workers call it; the first one writes."""
        def write():
            with fluid.scope_guard(_core.Scope()):
                program = self._load_fresh(epoch, executor)
                fluid.io.save_inference_model(dirname, feeds, targets, executor, program, schema=schema)
        if self._fleet is None:
            write()
        else:
            _cluster.by_first_worker(self._role(), "BestModel.save_inference_model", write)

    def _role(self):
        return _cluster.role_of(self._fleet, "BestModel")

    def _folder(self, epoch):
        return os.path.join(self.path, "epoch-%06d" % (epoch + 1))

    def _save_here(self):
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
        with fluid.scope_guard(self._scope):
            fluid.save(self._program, self.path)

    def _save_from_servers(self, epoch):
        """A folder that appears whole; then those of earlier epochs are removed."""
        folder = self._folder(epoch)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(folder + ".tmp", ignore_errors=True)
        os.makedirs(self.path, exist_ok=True)
        with fluid.scope_guard(self._scope):
            save_remote(self._fleet._executor, folder + ".tmp", self._fleet.main_program, None)
        os.rename(folder + ".tmp", folder)
        for name in os.listdir(self.path):
            if _EPOCH.fullmatch(name) and name != os.path.basename(folder):
                shutil.rmtree(os.path.join(self.path, name))

    def _load_fresh(self, epoch, executor):
        """Loads the files into the current scope, which is empty. Returns the program of their variables."""
        if not self.on_servers():
            fluid.load(self._program, self.path, executor)
            return self._program
        program, folder = self._fleet._transpiler_source("BestModel"), self._folder(epoch)
        found = [one for one in program.list_vars()
                 if one.persistable and os.path.exists(os.path.join(folder, one.name))]
        fluid.io.load_vars(executor, folder, program, vars=found)
        return program
