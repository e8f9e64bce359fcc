"""Trains a network on scikit-learn's handwritten digits, in several processes.

    torchrun --nproc-per-node 4 digits.py
    TRIBUTARY_CARD=cpu:sum=exact torchrun --nproc-per-node 4 digits.py --order 3,1,0,2 --bucket 1
    torchrun --nproc-per-node 4 digits.py --backend gloo

It prints the loss, the accuracy on images that were not trained, and a digest of all gradients of each epoch.
With a card whose sum is exact, the digest is the same for every order of the processes, every bucket size and
every card.
"""

import argparse
import hashlib

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TRAINED = 1500  # images; the other 297 test
BATCH = 25  # images of a process in a step


def main() -> None:
    options = arguments()
    torch.set_num_threads(1)
    dist.init_process_group(options.backend)
    size = dist.get_world_size()
    order = options.order or list(range(size))
    if sorted(order) != list(range(size)):
        raise SystemExit(f"--order: {order} is not an order of the {size} ranks")

    images, labels = digits()
    shard = torch.arange(order[dist.get_rank()], TRAINED, size)  # the images of this process
    torch.manual_seed(0)
    model = DistributedDataParallel(network(options.hidden), bucket_cap_mb=options.bucket)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    shuffle = torch.Generator().manual_seed(order[dist.get_rank()])

    losses = []
    for epoch in range(1, options.epochs + 1):
        digest, total, steps = hashlib.sha256(), torch.zeros(()), len(shard) // BATCH
        mixed = shard[torch.randperm(len(shard), generator=shuffle)]
        for step in range(steps):
            batch = mixed[step * BATCH : (step + 1) * BATCH]
            loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            for parameter in model.parameters():
                digest.update(parameter.grad.numpy())
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        losses.append(total.item() / steps / size)
        if dist.get_rank() == 0:
            right = accuracy(model, images[TRAINED:], labels[TRAINED:])
            print(f"epoch {epoch:2}  loss {losses[-1]:.4f}  accuracy {right:.1%}  gradients {digest.hexdigest()[:16]}")
    if options.plot and dist.get_rank() == 0:
        plot(losses, options.plot)
    dist.destroy_process_group()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--backend", default="tributary", help="of torch.distributed (default %(default)s)")
    parser.add_argument("--epochs", type=int, default=10, help="(default %(default)s)")
    parser.add_argument("--hidden", type=int, default=1024, help="neurons of a hidden layer (default %(default)s)")
    parser.add_argument("--bucket", type=float, default=25, metavar="MB", help="most of a bucket of gradients (default %(default)s)")
    parser.add_argument(
        "--order", type=lambda text: [int(rank) for rank in text.split(",")], metavar="RANKS", help="whose images each process has, as in 3,1,0,2"
    )
    parser.add_argument("--plot", metavar="FILE", help="draw the losses into FILE, such as loss.svg")
    return parser.parse_args()


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Returns 1797 images of 64 pixels, in a fixed random order, and what they show."""
    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(0))
    return torch.tensor(data.data / 16, dtype=torch.float32)[order], torch.tensor(data.target)[order]


def network(hidden: int) -> nn.Module:
    return nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 10))


def accuracy(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    with torch.no_grad():
        return (model(images).argmax(1) == labels).double().mean().item()


def plot(losses: list[float], file: str) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.5), layout="constrained")
    axes.plot(range(1, len(losses) + 1), losses, marker="o")
    axes.set(xlabel="epoch", ylabel="loss", ylim=0)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file)


if __name__ == "__main__":
    main()
