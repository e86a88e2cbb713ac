"""The mention tagger in torch: the network of `indexer/extraction/mention_tagger.py`, and how it is trained."""

import copy
import random
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from indexer.extraction.mention_tagger import DILATIONS, NORM_EPSILON
from indexer.extraction.word_features import FEATURES
from training.mention_data import UNKNOWN, Example

WIDTH = 128
BATCH = 16
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 0.01
TEACHER_SHARE = 0.7  # of the loss, where a word has a label and a teacher


class Network(nn.Module):
    """As `tagger_graph` has it; names of weights agree."""

    def __init__(self, state_width: int, labels: int, dropout: float) -> None:
        super().__init__()
        self.project = nn.Linear(state_width, WIDTH)
        self.join = nn.Linear(WIDTH + FEATURES, WIDTH)
        self.mix = nn.ModuleList(nn.Linear(3 * WIDTH, WIDTH) for _ in DILATIONS)
        self.norm = nn.ModuleList(nn.LayerNorm(WIDTH, eps=NORM_EPSILON) for _ in DILATIONS)
        self.label = nn.Linear(WIDTH, labels)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: torch.Tensor, features: torch.Tensor, is_word: torch.Tensor) -> torch.Tensor:
        """(texts, words, ...) to logits (texts, words, labels). `is_word` (texts, words, 1) is 0 behind an end."""
        hidden = functional.gelu(self.project(self.dropout(states)))
        hidden = functional.gelu(self.join(self.dropout(torch.cat([hidden, features], dim=-1)))) * is_word
        for mix, norm, distance in zip(self.mix, self.norm, DILATIONS, strict=True):
            padded = functional.pad(self.dropout(hidden), (0, 0, distance, distance))
            count = hidden.shape[1]
            around = torch.cat([padded[:, at : at + count] for at in (0, distance, 2 * distance)], dim=-1)
            hidden = norm(hidden + functional.gelu(mix(around))) * is_word
        return self.label(self.dropout(hidden))


def train(
    examples: Sequence[Example], labels: int, *, epochs: int, dropout: float, seed: int, threads: int = 2
) -> Network:
    """AdamW with one cycle of the learning rate (Smith and Topin 2019). The same arguments give the same weights."""
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    chance = random.Random(seed)
    network = Network(examples[0].states.shape[1], labels, dropout)
    optimiser = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    steps = epochs * -(-len(examples) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LEARNING_RATE, total_steps=steps, pct_start=0.1)
    order = list(examples)
    for _ in range(epochs):
        chance.shuffle(order)
        network.train()
        for start in range(0, len(order), BATCH):
            loss = _loss(network, order[start : start + BATCH], labels)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
    return network.eval()


def probabilities(networks: Sequence[Network], examples: Sequence[Example]) -> list[NDArray[np.float32]]:
    """The mean of the networks' probabilities of labels, (n_words, n_labels) an example."""
    found: list[NDArray[np.float32]] = []
    with torch.no_grad():
        for start in range(0, len(examples), 4 * BATCH):
            part = examples[start : start + 4 * BATCH]
            inputs = _batch(part)
            mean = torch.stack([network(*inputs).softmax(-1) for network in networks]).mean(0).numpy()
            found += [copy.copy(mean[row, : len(each.states)]) for row, each in enumerate(part)]
    return found


def weights_of(network: Network) -> dict[str, NDArray[np.float32]]:
    return {name: tensor.detach().numpy().astype(np.float32) for name, tensor in network.state_dict().items()}


def _loss(network: Network, examples: Sequence[Example], labels: int) -> torch.Tensor:
    states, features, is_word = _batch(examples)
    logits = network(states, features, is_word)
    wanted = torch.full(logits.shape[:2], UNKNOWN)
    taught = torch.zeros_like(logits)
    has_teacher = torch.zeros(logits.shape[:2], dtype=torch.bool)
    for row, example in enumerate(examples):
        count = len(example.labels)
        wanted[row, :count] = torch.from_numpy(example.labels)
        if example.teacher is not None:
            taught[row, :count] = torch.from_numpy(example.teacher)
            has_teacher[row, :count] = True
    logged = logits.log_softmax(-1)
    of_teacher = -(taught * logged).sum(-1)
    has_label = wanted != UNKNOWN
    of_label = functional.nll_loss(
        logged.reshape(-1, labels), wanted.reshape(-1), ignore_index=UNKNOWN, reduction="none"
    ).reshape(wanted.shape)
    share = torch.where(has_label & has_teacher, TEACHER_SHARE, has_teacher.float())
    words = has_label | has_teacher
    return ((share * of_teacher + (1 - share) * of_label)[words]).mean()


def _batch(examples: Sequence[Example]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    longest = max(len(example.states) for example in examples)
    states = torch.zeros(len(examples), longest, examples[0].states.shape[1])
    features = torch.zeros(len(examples), longest, FEATURES)
    is_word = torch.zeros(len(examples), longest, 1)
    for row, example in enumerate(examples):
        count = len(example.states)
        states[row, :count] = torch.from_numpy(example.states.astype(np.float32))
        features[row, :count] = torch.from_numpy(example.features.astype(np.float32))
        is_word[row, :count] = 1
    return states, features, is_word
