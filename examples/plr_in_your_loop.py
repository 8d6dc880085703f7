"""PLR in anybody's training loop: add it to the loss that you have. Digits, a small network, a few seconds.

python examples/plr_in_your_loop.py
"""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

from plremix import PLRLoss

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
truth = torch.tensor(digits.target)
given = torch.where(torch.rand(len(truth)) < 0.4, torch.randint(10, truth.shape), truth)  # 36 % are wrong

backbone = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.ReLU(), nn.Flatten())
classifier, projector = nn.Linear(576, 10), nn.Linear(576, 64)
optimizer = torch.optim.Adam([*backbone.parameters(), *classifier.parameters(), *projector.parameters()], 1e-3)
plr = PLRLoss(kappa=2, flat=False, temperature=0.2)


def view(batch: torch.Tensor) -> torch.Tensor:
    """Your augmentation; here a shift by a pixel and some noise."""
    down, right = torch.randint(-1, 2, (2,)).tolist()
    return batch.roll((down, right), (2, 3)) + 0.1 * torch.randn_like(batch)


for epoch in range(8):
    for mine in torch.randperm(1400).split(64):
        logits = classifier(backbone(view(images[mine])))
        embeddings = torch.stack([projector(backbone(view(images[mine]))) for _ in range(2)], dim=1)  # (b, views, d)
        loss = F.cross_entropy(logits, given[mine]) + 0.5 * plr(embeddings, logits, given[mine])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = (classifier(backbone(images[1400:])).argmax(1) == truth[1400:]).float().mean()
    print(f"epoch {epoch}: test accuracy {right:.1%}, share of pairs that repel {plr.stats['negative_share']:.0%}")
