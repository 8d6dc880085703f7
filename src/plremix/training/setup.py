"""From a config to the things that it names: data with its noise, and the method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from lightning_fabric import Fabric
from torch import Tensor

from plremix.config import CoDivideConfig, Config
from plremix.data import noise
from plremix.data.dataset import LabelledImages
from plremix.data.files import Images
from plremix.data.loading import Loader
from plremix.data.sources import cifar, clothing1m, digits, own, tiny_imagenet, webvision
from plremix.data.sources.listed import Look
from plremix.errors import InputError
from plremix.methods.base import Method
from plremix.methods.codivide import CoDivide
from plremix.methods.coteaching import CoTeaching
from plremix.methods.cross_entropy import CrossEntropy
from plremix.methods.elr import ELR, ELRPlus
from plremix.methods.jocor import JoCoR
from plremix.methods.mixup import MixUp
from plremix.networks import BACKBONES, Architecture, Network, Shape
from plremix.randomness import generator

METHODS: dict[str, Callable[..., Method]] = {
    "cross-entropy": CrossEntropy,
    "mixup": MixUp,
    "co-teaching": CoTeaching,
    "co-teaching-plus": CoTeaching,
    "jocor": JoCoR,
    "dividemix": CoDivide,
    "elr": ELR,
    "elr-plus": ELRPlus,
    "unicon": CoDivide,
    "plremix": CoDivide,
}


def _cifar(config: Config) -> LabelledImages:
    return cifar.load(
        config.data,
        config.data_dir,
        config.cache_dir,
        download=config.download,
        human_labels=config.human_labels,
    )


SOURCES: dict[str, Callable[[Config], LabelledImages]] = {
    "digits": lambda config: digits.load(),
    "cifar10": _cifar,
    "cifar100": _cifar,
    "tiny-imagenet": lambda config: tiny_imagenet.load(
        config.data_dir, config.image_size, config.cache_dir, download=config.download
    ),
    "clothing1m": lambda config: clothing1m.load(
        config.data_dir, config.image_size, config.resize, stream=config.stream
    ),
    "webvision": lambda config: webvision.load(
        config.data_dir,
        config.image_size,
        config.resize,
        first_classes=config.first_classes,
        subset=config.web_subset,
        stream=config.stream,
    ),
}


def load_data(config: Config) -> LabelledImages:
    """The images of the config's source, with the labels that are trained on."""
    if config.human_labels != "none":
        _check_human_labels(config)
    if config.data in SOURCES:
        if config.test is not None:
            raise InputError(f"--test is for own images; {config.data} has test images of its own")
        data = SOURCES[config.data](config)
    else:
        data = own.load(
            Path(config.data),
            config.image_size,
            config.channels,
            resize=config.resize,
            stream=config.stream,
            image_column=config.image_column,
            label_column=config.label_column,
            label_key=config.label_key,
            truth_key=config.truth_key,
            test=config.test,
        )
    if config.noise_file is not None:
        return data.relabelled(noise.read_noise_file(config.noise_file, len(data), len(data.classes)))
    if config.noise == "none":
        return data
    return data.relabelled(_noisy_labels(config, data))


def _noisy_labels(config: Config, data: LabelledImages) -> Tensor:
    """The labels after the config's noise."""
    draws, ratio, count = generator(config.seed, "noise"), config.noise_ratio, len(data.classes)
    clean = data.given_labels if data.true_labels is None else data.true_labels
    if config.noise == "symmetric":
        return noise.symmetric(clean, count, ratio, draws)
    if config.noise_model == "map" or config.noise_map:
        usual = cifar.CIFAR10_MAP if config.data == "cifar10" else None
        return noise.asymmetric(clean, count, ratio, draws, config.class_map() or usual)
    if config.noise_model == "next":
        return noise.next_in_group(clean, [range(count)], ratio, draws)
    if config.noise_model == "blocks5":
        return noise.next_in_group(clean, noise.blocks(count, 5), ratio, draws)
    if config.data != "cifar100":
        raise InputError(f"--noise-model {config.noise_model} is for --data cifar100, whose super-classes are known")
    if config.noise_model == "superclass-next":
        return noise.next_in_group(clean, cifar.CIFAR100_GROUPS, ratio, draws)
    return noise.random_in_group(clean, cifar.CIFAR100_GROUPS, ratio, draws)


def _check_human_labels(config: Config) -> None:
    if config.data not in cifar.KINDS:
        raise InputError(f"--human-labels are those of cifar10 and cifar100, not of {config.data}")
    if config.noise != "none" or config.noise_file is not None:
        raise InputError("--human-labels are noisy already: give --noise none and no --noise-file")


def look_at(path: Path, image_column: str, label_column: str, label_key: str) -> tuple[Look, int]:
    """What own images are like, and the number of their classes, before anything is decided."""
    return own.look(path, image_column, label_column, label_key)


def has_gpu() -> bool:
    return torch.cuda.is_available()


def on_device(images: Images, fabric: Fabric) -> Images:
    """Pixels go there at once and stay; files are decoded when it is their turn."""
    return images.to(fabric.device) if isinstance(images, Tensor) else images


def build_method(
    config: Config, data: LabelledImages, fabric: Fabric, *, active_shortcuts: bool | None = None
) -> Method:
    """The method of the config on this data, on the device and processes of `fabric`; a network of an earlier version
    may have had other shortcuts."""
    mean, std = (values.to(fabric.device) for values in data.statistics())
    loader = Loader(on_device(data.images, fabric), mean, std, fabric.global_rank, fabric.world_size)
    labels = data.given_labels.to(fabric.device)
    ours = config.network in BACKBONES
    shape = BACKBONES[config.network] if ours else Shape()
    architecture = Architecture(
        channels=data.channels,
        classes=len(data.classes),
        embedding_size=config.embedding_size if _embeds(config) else 0,
        timm="" if ours else config.network,
        width=config.width or shape.width,
        blocks=config.blocks or shape.blocks,
        pool_grid=config.pool_grid,
        active_shortcuts=shape.active_shortcuts if active_shortcuts is None else active_shortcuts,
    )
    method = METHODS[config.method](config, loader, labels, architecture, fabric)
    if not ours:
        _check_size(method.networks[0], data.channels, data.side, fabric)
    return method


@torch.no_grad()
def _check_size(network: Network, channels: int, side: Sequence[int], fabric: Fabric) -> None:
    """Some of timm's models take images of one size only."""
    try:
        network.eval()(torch.zeros(1, channels, *side, device=fabric.device))
    except (RuntimeError, AssertionError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        name, size = network.architecture.timm, "x".join(map(str, side))
        raise InputError(f"the network {name} cannot take images of {size} (--image-size): {reason}") from error


def _embeds(config: Config) -> bool:
    """Whether the networks need a projector: a contrast, or a split that looks at embeddings."""
    return config.contrast != "none" or config.pretrain != "none" or isinstance(config, CoDivideConfig)
