"""Makes w0.npy .. w3.npy: the gradients of one data-parallel training step.

Four workers train one small network (64-256-128-10, ReLU, softmax cross entropy, 50,826 parameters) on
scikit-learn's handwritten digits. Each worker owns a quarter of the training images and computes its
gradient from its own batch. Every step sums the four gradients in the card's tree order and takes
their mean, as a data-parallel job does. At the chosen step, the script writes each worker's gradient as one
flat float32 array: all weights and biases, layer by layer.

    python make.py [--step 200] [--out DIR]

Needs scikit-learn (requirements.txt). All numbers are seeded float32 numbers. Another BLAS may
round the last bit of a dot product differently, so files from another machine may differ.
"""

import argparse
import pathlib

import numpy as np
from sklearn.datasets import load_digits

from check import tree_sum

WORKERS = 4
LAYERS = (64, 256, 128, 10)
BATCH = 32  # images of one worker in one step
RATE = np.float32(0.1)
HELD_BACK = 297  # images kept for the accuracy that is printed


def shards(rng):
    """Returns the (images, labels) of each worker, and of the test set, disjoint and shuffled."""
    digits = load_digits()
    order = rng.permutation(len(digits.target))
    images = (digits.data[order] / 16.0).astype(np.float32)
    labels = digits.target[order]
    train = np.array_split(np.arange(HELD_BACK, len(labels)), WORKERS)
    return [(images[part], labels[part]) for part in train], (images[:HELD_BACK], labels[:HELD_BACK])


def initial(rng):
    """Returns the list of (weights, biases) with He's initialisation, float32."""
    return [
        ((rng.standard_normal((n, m)) * np.sqrt(2.0 / n)).astype(np.float32), np.zeros(m, np.float32))
        for n, m in zip(LAYERS, LAYERS[1:])
    ]


def forward(params, images):
    """Returns the input of every layer, and the logits."""
    inputs = [images]
    for w, b in params[:-1]:
        inputs.append(np.maximum(inputs[-1] @ w + b, np.float32(0)))
    w, b = params[-1]
    return inputs, inputs[-1] @ w + b


def gradient(params, images, labels):
    """Returns the gradient of the mean cross entropy of a batch, flat, float32."""
    inputs, logits = forward(params, images)
    delta = np.exp(logits - logits.max(axis=1, keepdims=True))
    delta /= delta.sum(axis=1, keepdims=True)
    delta[np.arange(len(labels)), labels] -= np.float32(1)
    delta /= np.float32(len(labels))
    parts = []
    for (w, _), x in zip(reversed(params), reversed(inputs)):
        parts += [delta.sum(axis=0), (x.T @ delta).ravel()]
        delta = (delta @ w.T) * (x > 0)
    return np.concatenate(parts[::-1])


def update(params, mean):
    """Takes one step of gradient descent along the flat mean gradient."""
    at = 0
    for w, b in params:
        for p in (w, b):
            p -= RATE * mean[at : at + p.size].reshape(p.shape)
            at += p.size


def accuracy(params, images, labels):
    return float((forward(params, images)[1].argmax(axis=1) == labels).mean())


def main():
    parser = argparse.ArgumentParser(description="Makes the gradients of one data-parallel training step.")
    parser.add_argument("--step", type=int, default=200, help="the step whose gradients are written (default 200)")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent, help="folder to write to (default that of make.py, over the files there)")
    args = parser.parse_args()

    rng = np.random.default_rng(20)
    train, test = shards(rng)
    params = initial(rng)
    for step in range(args.step + 1):
        picks = [rng.choice(len(labels), BATCH, replace=False) for _, labels in train]
        grads = [gradient(params, images[p], labels[p]) for (images, labels), p in zip(train, picks)]
        if step < args.step:
            update(params, tree_sum(grads) / np.float32(WORKERS))

    print(f"step {args.step}: accuracy {accuracy(params, *test):.3f} on {HELD_BACK} images held back")
    for rank, grad in enumerate(grads):
        path = args.out / f"w{rank}.npy"
        np.save(path, grad)
        print(f"{path}: {grad.size} x {grad.dtype}, norm {np.linalg.norm(grad):.4f}, zeros {int((grad == 0).sum())}")


if __name__ == "__main__":
    main()
