"""The networks that few-shot papers train themselves, with the layer names their checkpoints commonly use.

conv64f    four blocks of 64 filters (Vinyals et al. 2016); 84-pixel images give 1,600 dimensions. Also called CNN4.
resnet12   four blocks of three convolutions, 64/160/320/640 filters, leaky ReLU, pooling in the block
           (Oreshkin et al. 2018, Lee et al. 2019); 640 dimensions.
resnet10, resnet18   He et al. 2016 with a 3 x 3 first convolution and no early pooling, for 84-pixel images; 512.
resnet12_basic       the same family with 1, 1, 2, 1 two-convolution blocks and 64/160/320/640 filters; 640.
wrn28_10   wide residual network, 28 layers, 10 times wider (Zagoruyko & Komodakis 2016); 640 dimensions.

Every network maps (n, 3, height, width) to (n, D).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

RESNET12_FILTERS = (64, 160, 320, 640)


class Conv64F(nn.Module):
    """Four times: 3 x 3 convolution, batch norm, ReLU, 2 x 2 max pooling; then flattened."""

    layer1: nn.Sequential
    layer2: nn.Sequential
    layer3: nn.Sequential
    layer4: nn.Sequential

    def __init__(self, filters: int = 64) -> None:
        super().__init__()
        for block in range(1, 5):
            layers = nn.Sequential(
                nn.Conv2d(3 if block == 1 else filters, filters, 3, padding=1),
                nn.BatchNorm2d(filters),
                nn.ReLU(inplace=True),
                nn.MaxPool2d(2),
            )
            setattr(self, f"layer{block}", layers)

    def forward(self, images: Tensor) -> Tensor:
        return self.layer4(self.layer3(self.layer2(self.layer1(images)))).flatten(1)


class _PooledBlock(nn.Module):
    """Three convolutions with a 1 x 1 shortcut, then leaky ReLU and 2 x 2 max pooling."""

    def __init__(self, inward: int, filters: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inward, filters, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(filters)
        self.conv2 = nn.Conv2d(filters, filters, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(filters)
        self.conv3 = nn.Conv2d(filters, filters, 3, padding=1, bias=False)
        self.bn3 = nn.BatchNorm2d(filters)
        self.downsample = nn.Sequential(nn.Conv2d(inward, filters, 1, bias=False), nn.BatchNorm2d(filters))

    def forward(self, x: Tensor) -> Tensor:
        out = F.leaky_relu(self.bn1(self.conv1(x)), 0.1)
        out = F.leaky_relu(self.bn2(self.conv2(out)), 0.1)
        out = self.bn3(self.conv3(out)) + self.downsample(x)
        return F.max_pool2d(F.leaky_relu(out, 0.1), 2)


class ResNet12(nn.Module):
    """Four pooled blocks, then the mean over positions."""

    layer1: nn.Sequential
    layer2: nn.Sequential
    layer3: nn.Sequential
    layer4: nn.Sequential

    def __init__(self, filters: Sequence[int] = RESNET12_FILTERS) -> None:
        super().__init__()
        for block, (inward, outward) in enumerate(zip((3, *filters), filters, strict=False), start=1):
            setattr(self, f"layer{block}", nn.Sequential(_PooledBlock(inward, outward)))

    def forward(self, images: Tensor) -> Tensor:
        return self.layer4(self.layer3(self.layer2(self.layer1(images)))).mean((-2, -1))


class _BasicBlock(nn.Module):
    """Two convolutions with an identity shortcut, or a 1 x 1 convolution if size or filters change."""

    def __init__(self, inward: int, filters: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inward, filters, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(filters)
        self.conv2 = nn.Conv2d(filters, filters, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(filters)
        self.downsample: nn.Module | None = None
        if stride != 1 or inward != filters:
            self.downsample = nn.Sequential(nn.Conv2d(inward, filters, 1, stride, bias=False), nn.BatchNorm2d(filters))

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    """A 3 x 3 first convolution, four stages of basic blocks, then the mean over positions."""

    layer1: nn.Sequential
    layer2: nn.Sequential
    layer3: nn.Sequential
    layer4: nn.Sequential

    def __init__(self, blocks: Sequence[int], filters: Sequence[int] = (64, 128, 256, 512)) -> None:
        super().__init__()
        inward = 64
        self.conv1 = nn.Conv2d(3, inward, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(inward)
        for stage, (count, outward) in enumerate(zip(blocks, filters, strict=True), start=1):
            layers = []
            for i in range(count):
                layers.append(_BasicBlock(inward, outward, stride=2 if stage > 1 and i == 0 else 1))
                inward = outward
            setattr(self, f"layer{stage}", nn.Sequential(*layers))

    def forward(self, images: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(images)))
        return self.layer4(self.layer3(self.layer2(self.layer1(x)))).mean((-2, -1))


class _WideBlock(nn.Module):
    """Batch norm and ReLU before each of two convolutions."""

    def __init__(self, inward: int, filters: int, stride: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inward)
        self.conv1 = nn.Conv2d(inward, filters, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(filters)
        self.conv2 = nn.Conv2d(filters, filters, 3, padding=1, bias=False)
        self.convShortcut = None if inward == filters else nn.Conv2d(inward, filters, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        active = F.relu(self.bn1(x))
        out = self.conv2(F.relu(self.bn2(self.conv1(active))))
        return out + (x if self.convShortcut is None else self.convShortcut(active))


class _WideStage(nn.Module):
    def __init__(self, inward: int, filters: int, count: int, stride: int) -> None:
        super().__init__()
        first = _WideBlock(inward, filters, stride)
        self.layer = nn.Sequential(first, *(_WideBlock(filters, filters, 1) for _ in range(count - 1)))

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


class WideResNet(nn.Module):
    """Three stages of (depth - 4) / 6 wide blocks, then batch norm, ReLU and the mean over positions."""

    def __init__(self, depth: int = 28, widen: int = 10) -> None:
        super().__init__()
        count = (depth - 4) // 6
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.block1 = _WideStage(16, 16 * widen, count, stride=1)
        self.block2 = _WideStage(16 * widen, 32 * widen, count, stride=2)
        self.block3 = _WideStage(32 * widen, 64 * widen, count, stride=2)
        self.bn1 = nn.BatchNorm2d(64 * widen)

    def forward(self, images: Tensor) -> Tensor:
        x = self.block3(self.block2(self.block1(self.conv1(images))))
        return F.relu(self.bn1(x)).mean((-2, -1))


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "conv64f": Conv64F,
    "resnet10": lambda: ResNet((1, 1, 1, 1)),
    "resnet12": ResNet12,
    "resnet12_basic": lambda: ResNet((1, 1, 2, 1), RESNET12_FILTERS),
    "resnet18": lambda: ResNet((2, 2, 2, 2)),
    "wrn28_10": WideResNet,
}


def build(name: str, seed: int = 0) -> nn.Module:
    """A network with random weights that follow from the seed alone (He et al. 2015 for convolutions)."""
    return _seeded(NETWORKS[name], seed)


SIZED: dict[str, Callable[[int], nn.Module]] = {
    "cnn4": Conv64F,
    "resnet12": lambda width: ResNet12([max(1, round(filters * width / 64)) for filters in RESNET12_FILTERS]),
}


def sized(name: str, width: int, seed: int = 0) -> nn.Module:
    """A network of SIZED whose first layer has `width` filters; 64 is what the papers have."""
    return _seeded(lambda: SIZED[name](width), seed)


def _seeded(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = make()
        for module in network.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network
