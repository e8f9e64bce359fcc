"""What `import torch` runs: the entry point of the group torch.backends.

It registers the backend "tributary" and imports nothing else, so that `import torch` stays as fast.
"""

from typing import Any


def register() -> None:
    """Makes torch.distributed.init_process_group("tributary") work."""
    from torch import distributed

    if distributed.is_available():
        # A card sums in the memory of the host. Groups refuse the tensors of other devices, or have another
        # backend for them ("cpu:tributary,cuda:nccl").
        distributed.Backend.register_backend("tributary", _create, extended_api=True, devices=["cpu"])


def _create(options: Any, backend_options: object) -> Any:
    from .torch import _group

    return _group.Group(options)
