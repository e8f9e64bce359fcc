"""PyTorch's gradients through a Tributary card.

    torch.distributed.init_process_group("tributary")

needs no import of this module: the package registers the backend by itself. TRAINING.md has the rest. OSP works
with any backend.
"""

from ._group import Group, traffic
from ._traffic import Traffic
from .osp import OSP

__all__ = ["OSP", "Group", "Traffic", "traffic"]
