"""What a run is: frozen dataclasses, one a method, validated once, here. `recipes.py` decides the values.

Every field is a flag of the command line (`batch_size` is `--batch-size`), with its docstring as the help.
The default beside a field is the paper's CIFAR-10 setting unless its comment says otherwise.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from dataclasses import dataclass, fields
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import tyro

from plremix.errors import InputError

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}  # seconds
SCHEMA_VERSION = 1


def _comma_separated(convert: type) -> tyro.constructors.PrimitiveConstructorSpec[tuple[Any, ...]]:
    """Lists are written with commas: `--kappa 3,2,1`."""
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar=f"{convert.__name__.upper()},...",
        instance_from_str=lambda words: tuple(convert(part) for part in words[0].split(",") if part),
        is_instance=lambda value: isinstance(value, tuple),
        str_from_instance=lambda value: [",".join(map(str, value))],
    )


Integers = Annotated[tuple[int, ...], _comma_separated(int)]
Floats = Annotated[tuple[float, ...], _comma_separated(float)]
ViewName = Literal[
    "plain",
    "flip",
    "crop",
    "crop-flip",
    "resized-crop",
    "distort",
    "distort-flip",
    "autoaugment-cifar",
    "autoaugment-imagenet",
    "flip-autoaugment-imagenet",
    "randaugment",
    "simclr",
]


LrSchedule = Literal["steps", "linear", "cosine", "restarts"]
ContrastName = Literal["none", "simclr", "scl", "plr", "plr-queue"]


@dataclass(frozen=True, kw_only=True)
class Config:
    """What every run has, whatever its method."""

    # Fields that are counted in epochs: they follow when --epochs changes a recipe's length.
    schedules: ClassVar[tuple[str, ...]] = (
        "lr_epochs",
        "lr_period",
        "kappa_epochs",
        "given_label_epochs",
        "warmup_epochs",
        "pretrain_epochs",
    )

    recipe: tyro.conf.Suppress[str] = "own"
    """The recipe that this run started from."""
    method: str = "plremix"
    """The method; its own settings come with it."""
    seed: int = 0
    """Every draw of the run, the noise included, follows from it."""

    # --- data
    data: str = "digits"
    """digits, cifar10, cifar100, tiny-imagenet, clothing1m, webvision, or the path of own images: a folder with a
    sub-folder a class, a .csv file, or an .npz file with x_train and y_train (and x_test, y_test, y_true, classes)."""
    data_dir: Path = Path("data")
    """Folder that holds the named data sets."""
    cache_dir: Path | None = None
    """Where decoded images are kept for the next start; None: beside the data."""
    download: bool = False
    """Fetch CIFAR or Tiny-ImageNet from its official address if it is not in --data-dir."""
    human_labels: Literal["none", "aggre", "random1", "random2", "random3", "worst", "noisy"] = "none"
    """Train on the human labels of CIFAR-10N (aggre, random1 to random3, worst) or CIFAR-100N (noisy)."""
    first_classes: int = 0  # paper: the first 50 of WebVision
    """Only the first so many classes of WebVision; 0: all."""
    web_subset: Literal["google", "all"] = "google"  # paper, sec. 4.1
    """Which search engine's images of WebVision."""
    epoch_images: int = 0  # published code: 64,000 for Clothing1M
    """Images drawn anew for each epoch, as many of every class as there are; 0: all."""
    label_key: str = "y_train"
    """The array of an .npz file that holds the labels to train on."""
    truth_key: str = "y_true"
    """The array of an .npz file that holds the true labels, where they are known."""
    noise: Literal["none", "symmetric", "asymmetric"] = "none"
    """Label noise to add; the noisy labels are written to noise.json."""
    noise_ratio: float = 0.0
    """Share of the samples that goes through the noise (symmetric: the true class may be drawn again)."""
    noise_map: str = ""
    """Asymmetric noise: class numbers as from:to,from:to (3:5,5:3); empty: CIFAR-10's usual pairs, with other data
    every class to the next one."""
    noise_model: Literal["map", "next", "blocks5", "superclass-next", "superclass-random"] = "map"
    """Asymmetric noise: a share of the samples goes through --noise-map; next: each sample to the next class with that
    probability (Tiny-ImageNet); or CIFAR-100's: to the next class in a block of five numbers (the paper's), to the next
    class of the same super-class, or to a random other one of it."""
    noise_file: Path | None = None
    """A JSON list of labels in data order, instead of noise that is drawn."""

    # --- image files
    image_size: int = 64  # ours: what a CPU can train on
    """Side in pixels that image files are brought to."""
    resize: int = 0  # published code: 256 for Clothing1M, 320 for WebVision
    """Shorter side that image files are brought to before --image-size is cut out of them; 0: no cut."""
    channels: Literal[1, 3] = 3
    """1 reads image files as greyscale, 3 as colour."""
    image_column: str = ""
    """Column of a CSV file with the image's path; empty: found by its name."""
    label_column: str = ""
    """Column of a CSV file with the label; empty: found by its name."""
    test: Path | None = None
    """Images with trusted labels to measure accuracy on: a folder, a CSV or an .npz file."""
    stream: Literal["auto", "always", "never"] = "auto"
    """Decode image files at each step instead of keeping their pixels in memory; auto: above 2 GB."""

    # --- verdict
    strictness: float = 0.5
    """From 0 (flag no label) over 0.5 (as judged) to 1 (flag every label that is not the safest half)."""

    # --- network and views
    network: str = "preact-resnet18"  # paper, sec. 4.1
    """The backbone: preact-resnet18, preact-resnet-small, or with the extra `timm` any model of timm by its name
    (resnet50, inception_resnet_v2)."""
    weights: str = ""  # paper: ImageNet's for Clothing1M, none elsewhere
    """What the backbone starts from: a .safetensors file, or pretrained (timm's own; --download fetches them); empty:
    from nothing."""
    pool_grid: int = 1  # published code: 2 for 64x64 images
    """Cells a side that a PreAct ResNet's last map is averaged to."""
    width: int | None = None
    """Channels of the first stage; None: the network's own."""
    blocks: Integers = ()
    """Blocks of each stage, as 2,2,2,2; empty: the network's own."""
    weak_view: ViewName = "crop-flip"  # published code
    """The view that warm-up learns from, and that labels are guessed from in every step."""
    strong_view: ViewName = "autoaugment-cifar"  # published code
    """The view that is contrasted and, with --learned-view strong, learned from."""
    crop_sides: Integers = ()  # published code: 224,128 for WebVision
    """Multi-crop: sides of two large and of the small strong views, as 224,128; empty: two strong views as they are."""
    crop_scales: Floats = (0.14, 1.0, 0.05, 0.14)  # published code, WebVision
    """Multi-crop: smallest and largest share of the image in a large view, then in a small one."""
    small_crops: int = 6  # published code
    """Multi-crop: how many small views."""

    # --- optimisation
    epochs: int = 400  # published code
    """Length of the run; a recipe's schedules scale with it unless they are given themselves."""
    batch_size: int = 64  # published code
    """b: a step of PLReMix takes b clean and b noisy samples; warm-up takes 2b."""
    lr: float = 0.02  # published code
    """Learning rate."""
    lr_epochs: Integers = (200,)  # published code
    """Epochs at which the learning rate takes a step; linear: the epoch from which it falls to 0."""
    lr_factor: float = 0.1  # published code; ELR: 0.01
    """What the learning rate is multiplied by at each step."""
    lr_schedule: LrSchedule = "steps"  # published code
    """How the learning rate falls; cosine: from the start to --lr-floor at the end of --lr-period, and up again after
    it; restarts: the same, but begun anew."""
    lr_period: int | None = None  # UNICON: 280 of 350 epochs; ELR: 10
    """Epochs that a cosine falls for; None: all but --finish-epochs."""
    lr_floor: float = 0.01  # UNICON
    """Where a cosine ends, as a share of --lr."""
    optimizer: Literal["sgd", "adam", "adamw"] = "sgd"  # published code
    """The optimizer."""
    momentum: float = 0.9  # published code
    """Momentum of SGD."""
    weight_decay: float = 5e-4  # published code
    """Weight decay."""
    averaging: float = 0.0  # ours: on for own images
    """How slowly the weights that predict follow those that learn, from step to step; 0: they are the same."""

    # --- contrast, a part that every method takes (paper, sec. 3.3)
    contrast: ContrastName = "none"
    """The contrastive part: none, every other sample negative (simclr), same pseudo label positive (scl), pseudo-label
    relaxed (plr), or that with a queue of a momentum encoder's embeddings (plr-queue)."""
    flat: bool = True  # published code
    """FlatNCE form (FlatPLR) instead of InfoNCE."""
    kappa: Integers = (3, 2, 1)  # paper, sec. 4.1
    """Likely classes of a sample in PLR, falling at --kappa-epochs; one value: fixed; 0: the given label alone."""
    kappa_epochs: Integers = (40, 70)  # paper, sec. 4.1
    """Epochs at which kappa takes its next value."""
    given_label_epochs: int | None = None  # published code: always; the paper: early in training
    """Until which epoch PLR counts the given label as likely; None: always."""
    temperature: float = 1.0  # published code
    """tau of the contrastive loss; in methods that split the data, from the first split on."""
    warmup_epochs: int = 10  # published code, for PLReMix
    """Epochs in which every other sample is a negative, before predictions are worth going by; in methods that split
    the data, those before the first split."""
    warmup_temperature: float = 0.1  # published code
    """tau of the contrastive loss before the first split."""
    contrast_weight: float = 1.0  # published code
    """Weight of the contrastive loss."""
    embedding_size: int = 128  # published code
    """Size of the projector's output."""
    queue_size: int = 1024  # ours
    """Embeddings kept by --contrast plr-queue."""
    queue_momentum: float = 0.99  # ours
    """How slowly its encoder follows the network."""

    # --- before the run
    pretrain: Literal["none", "simclr"] = "none"  # C2D and the paper's rows with a dagger
    """Contrastive pre-training of every network, without labels."""
    pretrain_epochs: int = 40  # ours
    """Its length."""

    # --- where it runs
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto takes a GPU where there is one."""
    devices: int = 1
    """Processes (on a GPU machine: GPUs) on each machine."""
    nodes: int = 1
    """Machines; above 1, start the command on each of them with torchrun or a cluster manager."""
    precision: Literal["32-true", "16-mixed", "bf16-mixed"] = "32-true"
    """Numeric precision; the mixed ones need a GPU."""
    compile: bool = False
    """Compile the networks' training passes; needs a GPU."""
    log: Literal["none", "tensorboard", "wandb"] = "none"
    """Send the metrics there too; needs the extra of that name."""

    def __post_init__(self) -> None:
        _require(0 <= self.noise_ratio <= 1, "--noise-ratio", self.noise_ratio, "a share from 0 to 1")
        _require(self.epochs >= 1, "--epochs", self.epochs, "at least 1")
        _require(0 <= self.strictness <= 1, "--strictness", self.strictness, "from 0 to 1")
        _require(self.image_size >= 8, "--image-size", self.image_size, "at least 8")
        _require(
            self.resize == 0 or self.resize >= self.image_size,
            "--resize",
            self.resize,
            f"0, or at least the --image-size of {self.image_size}",
        )
        _require(self.first_classes == 0 or self.first_classes >= 2, "--first-classes", self.first_classes, "0 or 2 up")
        _require(self.epoch_images >= 0, "--epoch-images", self.epoch_images, "0 or more")
        _require(self.batch_size >= 2, "--batch-size", self.batch_size, "at least 2")
        _require(_positive(self.lr), "--lr", self.lr, "above 0")
        _require(0 <= self.momentum < 1, "--momentum", self.momentum, "from 0 to below 1")
        _require(0 <= self.weight_decay < math.inf, "--weight-decay", self.weight_decay, "0 or more")
        _require(0 <= self.averaging < 1, "--averaging", self.averaging, "from 0 to below 1")
        _require(self.width is None or self.width >= 1, "--width", self.width, "at least 1")
        _require(all(count >= 1 for count in self.blocks), "--blocks", self.blocks, "at least 1 in each stage")
        _require(self.pool_grid >= 1, "--pool-grid", self.pool_grid, "at least 1")
        _require(len(self.crop_sides) in (0, 2), "--crop-sides", self.crop_sides, "two sides, as 224,128, or empty")
        _require(all(side >= 8 for side in self.crop_sides), "--crop-sides", self.crop_sides, "at least 8 each")
        scales = self.crop_scales
        _require(
            len(scales) == 4 and 0 < scales[0] <= scales[1] <= 1 and 0 < scales[2] <= scales[3] <= 1,
            "--crop-scales",
            scales,
            "four shares above 0 and up to 1, as 0.14,1,0.05,0.14",
        )
        _require(self.small_crops >= 1, "--small-crops", self.small_crops, "at least 1")
        _require(_rising(self.lr_epochs), "--lr-epochs", self.lr_epochs, "rising epochs from 0 up")
        _require(0 < self.lr_factor <= 1, "--lr-factor", self.lr_factor, "above 0 and up to 1")
        _require(self.lr_period is None or self.lr_period >= 1, "--lr-period", self.lr_period, "at least 1")
        _require(0 <= self.lr_floor <= 1, "--lr-floor", self.lr_floor, "from 0 to 1")
        _require(self.devices >= 1, "--devices", self.devices, "at least 1")
        _require(self.nodes >= 1, "--nodes", self.nodes, "at least 1")
        _require(self.seed >= 0, "--seed", self.seed, "0 or more")
        _require(
            self.batch_size >= self.devices * self.nodes,
            "--batch-size",
            self.batch_size,
            f"at least one sample for each of the {self.devices * self.nodes} processes",
        )
        _require(bool(self.network), "--network", repr(self.network), "a name, such as preact-resnet-small")
        _require(len(self.kappa) >= 1, "--kappa", self.kappa, "one or more numbers, as 3,2,1")
        _require(all(kappa >= 0 for kappa in self.kappa), "--kappa", self.kappa, "0 or more")
        _require(_rising(self.kappa_epochs), "--kappa-epochs", self.kappa_epochs, "rising epochs from 0 up")
        _require(
            len(self.kappa) == 1 or len(self.kappa_epochs) == len(self.kappa) - 1,
            "--kappa-epochs",
            self.kappa_epochs,
            f"one epoch for each change of --kappa {','.join(map(str, self.kappa))}, so {len(self.kappa) - 1} in all",
        )
        until = self.given_label_epochs
        _require(until is None or until >= 0, "--given-label-epochs", until, "0 or more")
        _require(until is None or 0 not in self.kappa, "--given-label-epochs", until, "left out where --kappa is 0")
        _require(self.embedding_size >= 1, "--embedding-size", self.embedding_size, "at least 1")
        _require(self.queue_size >= 1, "--queue-size", self.queue_size, "at least 1")
        _require(self.warmup_epochs >= 0, "--warmup-epochs", self.warmup_epochs, "0 or more")
        _require(self.pretrain_epochs >= 1, "--pretrain-epochs", self.pretrain_epochs, "at least 1")
        _require(0 <= self.queue_momentum < 1, "--queue-momentum", self.queue_momentum, "from 0 to below 1")
        _require(0 <= self.contrast_weight < math.inf, "--contrast-weight", self.contrast_weight, "0 or more")
        for name in ("temperature", "warmup_temperature"):
            _require(_positive(getattr(self, name)), _flag(name), getattr(self, name), "above 0")
        self.class_map()
        for field, hint in _hints(type(self)).items():
            if choices := _choices(hint):
                value = getattr(self, field)
                _require(value in choices, _flag(field), value, f"one of {', '.join(map(str, choices))}")

    def class_map(self) -> dict[int, int]:
        """The noise map as numbers; empty stands for the next class."""
        try:
            pairs = [part.split(":") for part in self.noise_map.split(",") if part]
            return {int(source): int(target) for source, target in pairs}
        except ValueError:
            raise InputError(f"--noise-map must look like 3:5,5:3, got {self.noise_map!r}") from None

    def epoch_cost(self, epoch: int) -> float:
        """What an epoch costs beside others of the run, for the time that is left."""
        return 1.0

    @property
    def scheduled_epochs(self) -> int:
        """How long the schedule of the learning rate is, where nothing else is said."""
        return self.epochs

    def learning_rate(self, epoch: int) -> float:
        """The rate of an epoch, by the schedule."""
        if self.lr_schedule in ("cosine", "restarts"):
            period = self.lr_period or self.scheduled_epochs
            place = epoch % period if self.lr_schedule == "restarts" else epoch
            return self.lr * (self.lr_floor + (1 - self.lr_floor) * (1 + math.cos(math.pi * place / period)) / 2)
        if self.lr_schedule == "linear":
            start = self.lr_epochs[0] if self.lr_epochs else 0
            return self.lr * min(1.0, (self.epochs - epoch) / max(1, self.epochs - start))
        return self.lr * self.lr_factor ** sum(epoch >= milestone for milestone in self.lr_epochs)

    def kappa_at(self, epoch: int) -> int:
        """kappa of an epoch."""
        if len(self.kappa) == 1:
            return self.kappa[0]
        return self.kappa[sum(epoch >= milestone for milestone in self.kappa_epochs)]

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values; `from_dict` takes them back."""
        values = dataclasses.asdict(self)
        return {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}


@dataclass(frozen=True, kw_only=True)
class CrossEntropyConfig(Config):
    """Plain cross-entropy on the given labels: what everything is compared with."""

    method: Literal["cross-entropy"] = "cross-entropy"


@dataclass(frozen=True, kw_only=True)
class MixUpConfig(Config):
    """Blended images with blended given labels."""

    method: Literal["mixup"] = "mixup"
    mixup_alpha: float = 32.0  # METHODS: the tables on noisy labels
    """Shares are drawn from Beta(alpha, alpha)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(_positive(self.mixup_alpha), "--mixup-alpha", self.mixup_alpha, "above 0")


@dataclass(frozen=True, kw_only=True)
class SmallLossConfig(Config):
    """Methods that leave out the samples of a batch with the largest losses."""

    schedules: ClassVar[tuple[str, ...]] = (*Config.schedules, "forget_epochs")

    optimizer: Literal["sgd", "adam", "adamw"] = "adam"  # published code
    """The optimizer."""
    lr: float = 0.001  # published code
    """Learning rate."""
    lr_schedule: LrSchedule = "linear"  # published code
    """How the learning rate falls."""
    late_beta1: float | None = None  # published code: 0.1
    """Adam's first momentum from the first of --lr-epochs on; None: 0.9 to the end."""
    weight_decay: float = 0.0  # published code
    """Weight decay."""
    forget_rate: float | Literal["auto"] = "auto"
    """Share of a batch left out in the end; auto: the noise rate, estimated after --forget-epochs, and growing then."""
    forget_epochs: int = 10  # published code
    """Epochs over which that share grows from 0: the first ones, or those after the estimate."""

    def __post_init__(self) -> None:
        super().__post_init__()
        rate = self.forget_rate
        _require(rate == "auto" or 0 <= rate < 1, "--forget-rate", rate, "from 0 to below 1, or auto")
        _require(self.forget_epochs >= 1, "--forget-epochs", self.forget_epochs, "at least 1")
        late = self.late_beta1
        _require(late is None or 0 <= late < 1, "--late-beta1", late, "from 0 to below 1")
        _require(late is None or self.optimizer != "sgd", "--late-beta1", late, "left out with --optimizer sgd")

    def beta1(self, epoch: int) -> float:
        """Adam's first momentum in an epoch."""
        falls = epoch >= (self.lr_epochs[0] if self.lr_epochs else 0)
        return self.late_beta1 if self.late_beta1 is not None and falls else 0.9


PLUS_EPOCH = 20  # published code of Co-teaching+


@dataclass(frozen=True, kw_only=True)
class CoTeachingConfig(SmallLossConfig):
    """Two networks that choose small losses for each other: Co-teaching, and Co-teaching+ from `plus_epoch` on."""

    schedules: ClassVar[tuple[str, ...]] = (*SmallLossConfig.schedules, "plus_epoch")

    method: Literal["co-teaching", "co-teaching-plus"] = "co-teaching"
    plus_epoch: int | None = None
    """From this epoch on only samples that the networks disagree on are taught; None: from 20 on in Co-teaching+, never
    in Co-teaching."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.plus_epoch is None or self.plus_epoch >= 0, "--plus-epoch", self.plus_epoch, "0 or more")

    def teaches_disagreements(self, epoch: int) -> bool:
        """Whether only samples that the networks disagree on are taught in an epoch."""
        usual = PLUS_EPOCH if self.method == "co-teaching-plus" else None
        first = usual if self.plus_epoch is None else self.plus_epoch
        return first is not None and epoch >= first


@dataclass(frozen=True, kw_only=True)
class JoCoRConfig(SmallLossConfig):
    """Two networks trained as one, on the samples with a small joint loss."""

    method: Literal["jocor"] = "jocor"
    agreement: float = 0.9  # published code: lambda
    """Share of the networks' agreement in the joint loss; the rest is cross-entropy."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(0 <= self.agreement <= 1, "--agreement", self.agreement, "from 0 to 1")


@dataclass(frozen=True, kw_only=True)
class ELRConfig(Config):
    """Early-learning regularisation: predictions stay near their own running mean."""

    schedules: ClassVar[tuple[str, ...]] = (*Config.schedules, "elr_epochs", "ema_epochs")

    method: Literal["elr", "elr-plus"] = "elr"
    elr_weight: float = 3.0  # published code, CIFAR-10: lambda
    """Weight of the regulariser."""
    elr_epochs: int = 0  # published code of ELR+ on CIFAR-100: 40,000 steps
    """ELR+: epochs over which that weight grows; 0: it is there at once."""
    elr_momentum: float = 0.7  # published code, CIFAR-10: beta
    """How slowly a sample's target follows the predictions."""
    mixup_alpha: float = 1.0  # published code of ELR+
    """ELR+: shares of blended images are drawn from Beta(alpha, alpha)."""
    ema: float = 0.997  # published code of ELR+
    """ELR+: how slowly the networks that make the targets follow, at the end of the run."""
    ema_epochs: int | None = None  # published code: 40,000 steps on CIFAR, 0 elsewhere
    """ELR+: epochs over which they become that slow; None: 57 % of the run (114 of 200); 0: at once, after a start in
    which they are the mean of all steps."""
    reweight_labels: bool = False  # published code of ELR+: on for CIFAR-100
    """ELR+: multiply the blended labels by the blended targets."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(0 <= self.elr_weight < math.inf, "--elr-weight", self.elr_weight, "0 or more")
        _require(0 <= self.elr_momentum < 1, "--elr-momentum", self.elr_momentum, "from 0 to below 1")
        _require(_positive(self.mixup_alpha), "--mixup-alpha", self.mixup_alpha, "above 0")
        _require(0 <= self.ema < 1, "--ema", self.ema, "from 0 to below 1")
        _require(self.elr_epochs >= 0, "--elr-epochs", self.elr_epochs, "0 or more")
        _require(self.ema_epochs is None or self.ema_epochs >= 0, "--ema-epochs", self.ema_epochs, "0 or more")


PLAIN_EPOCHS = 10  # of warm-up without contrast, after which wrong labels are not yet learned by heart and still show
LATE_EPOCHS = 20  # at a falling rate on corrected labels, after which these are not yet learned by heart
FINISH_RATE = 0.3  # of the learning rate: at the full one, what was learned is shaken first (docs/figures.md)


@dataclass(frozen=True, kw_only=True)
class CoDivideConfig(Config):
    """Two networks that split the data for each other: PLReMix and its relatives, by their parts."""

    schedules: ClassVar[tuple[str, ...]] = (
        *Config.schedules,
        *("ramp_epochs", "neighbour_epochs", "finish_epochs"),
    )

    method: Literal["plremix", "dividemix", "unicon"] = "plremix"

    # --- parts
    split: Literal["mixture1d", "mixture2d", "neighbours", "small-loss", "class-balanced"] = "mixture2d"  # sec. 3.2
    """Who is clean: by a mixture over the classifier's loss (1d), that and the prototypes' (2d), by neighbours, the
    smallest losses, or as many of every class (class-balanced)."""
    contrast: ContrastName = "plr"  # paper, sec. 3.3
    """The contrastive part."""
    contrast_side: Literal["all", "noisy"] = "all"  # published code; UNICON: noisy
    """Whether the contrast sees both sides of the split or the noisy one alone."""
    contrast_every: int = 1  # published code: all
    """Contrast one sample of a step in so many: its views cost more than all the rest of warm-up."""
    warmup_contrast: bool = True  # published code; UNICON: none
    """Contrast with every other sample in warm-up."""
    contrast_above: float = 0.0  # ours: for own images; published code: always
    """Share of wrong labels from which on there is any contrast; above 0, it is estimated halfway through warm-up, and
    nothing is contrasted before. Where there is no warm-up, or one of more than 20 epochs, there is contrast from the
    start."""
    divide_anew: bool = False  # UNICON
    """Divide again before the second network's turn, instead of once an epoch for both."""
    loss_history: int = 1  # DivideMix at 90 %: 5
    """Epochs whose losses, each scaled to 0..1, are averaged before a mixture is fitted to them; 1: none but this."""
    mixture_steps: int = 10  # published code; C2D: 200
    """Iterations of the mixture's fit at most."""

    # --- semi-supervised part
    finish_epochs: int = 0  # ours: on for own images
    """Last epochs of the run, in which both networks learn the labels as corrected by then, and nothing else."""
    warmup_view: Literal["weak", "strong"] = "weak"  # published code; Clothing1M: strong
    """The view that warm-up's cross-entropy is taken on."""
    warmup_entropy: bool = False  # published code: on for asymmetric noise
    """Add the negative entropy of the predictions in warm-up."""
    warmup_images: int = 0  # DivideMix on Clothing1M: 64,000, twice as many as later
    """Images drawn for an epoch of warm-up; 0: --epoch-images."""
    warmup_clip: float = 0.0  # C2D: 1
    """Longest gradient of a step in warm-up; 0: no bound."""
    lambda_u: float | Literal["auto"] = 25.0  # published code
    """Weight of the noisy side, reached over --ramp-epochs; auto: by the noise rate that the first split shows
    and the number of classes."""
    ramp_epochs: int = 16  # published code
    """Epochs over which the weight of the noisy side grows."""
    guess: Literal["step", "epoch"] = "step"  # published code
    """Labels are guessed in every step, from two views of an image that are both learned from; or once an epoch, from
    the images as they are, and one view is learned from: a third of the passes."""
    sharpen: float = 0.5  # paper, sec. 3.4: T
    """Temperature that guessed labels are sharpened with."""
    beta: float = 4.0  # published code
    """MixUp draws its share from Beta(beta, beta)."""
    clean_threshold: float = 0.5  # published code
    """A sample is clean if its probability is above this."""
    learned_view: Literal["strong", "weak", "guessed"] = "strong"  # published code; DivideMix: guessed
    """Whether images are learned from in strong views, in further weak ones, or in the very ones that their labels are
    guessed from."""
    noisy_batch: Literal["same", "by-share", "proportional"] = "same"  # published code; UNICON: by-share
    """Noisy samples of a step: as many as clean ones (same), half of that over the clean side's share of the data, at
    most four times as many (by-share), or what their own share is, at most half of the batch (proportional)."""
    learn_noisy: bool = True  # published code; DivideMix on Clothing1M and WebVision: off
    """Learn from the noisy side's own images; off: they are only blended into the clean side's."""
    neighbours: int = 10  # ours: holds on digits and Fashion-MNIST
    """Neighbours of a sample in the graph of --split neighbours, of the verdict and of --contrast-above."""
    neighbour_alpha: float = 0.99  # ours: holds on digits and Fashion-MNIST
    """How far labels travel over that graph, from 0 to below 1."""
    neighbour_sharpness: float = 8.0  # ours: chosen on digits and Fashion-MNIST (docs/figures.md)
    """Power that the posteriors of the graph are raised to: they are flat, however right."""
    cluster_vote: float = 0.3  # ours: chosen on digits at 90 % (docs/figures.md)
    """Weight of whole clusters' votes beside the neighbourhood in --split neighbours."""
    neighbour_epochs: int = 300  # ours: three quarters of the run
    """Epoch by which the networks' own predictions have taken over from the neighbourhood, bit by bit."""
    neighbour_votes: float = 0.0  # ours: on for digits and own images
    """What each label among a sample's nearest counts for, as evidence of its class beside networks and neighbourhood,
    from 0 (nothing) to 1 (as if all were independent)."""
    benefit_of_doubt: bool = False  # ours: on for own images, which may be hard
    """Believe a label against a prediction that is not surer of another class than the noise, as counted, explains."""
    epoch_length: Literal["clean", "data"] = "clean"  # published code; "data" where a side is small
    """Steps of an epoch: the number of clean batches (as published), or N / b with either side drawn anew as needed."""

    # --- prototypes
    prototype_momentum: float = 0.99  # paper, sec. 3.2: eta, made for 400 epochs
    """How slowly prototypes and confidence thresholds move."""
    prototype_update: Literal["epoch", "sample"] = "epoch"  # published code; paper: sample
    """Move a prototype once an epoch by the mean of its confident samples, or once a sample."""
    prototype_class: Literal["classifier", "pseudo-label"] = "classifier"  # published code; paper: pseudo-label
    """Whose class a confident sample counts for."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(
            self.warmup_epochs <= self.epochs,
            "--warmup-epochs",
            self.warmup_epochs,
            f"at most the {self.epochs} epochs",
        )
        _require(
            0 <= self.finish_epochs <= self.epochs - self.warmup_epochs,
            "--finish-epochs",
            self.finish_epochs,
            f"from 0 to the {self.epochs - self.warmup_epochs} epochs that warm-up leaves",
        )
        _require(0 <= self.contrast_above < 1, "--contrast-above", self.contrast_above, "from 0 to below 1")
        _require(self.contrast_every >= 1, "--contrast-every", self.contrast_every, "at least 1")
        _require(self.neighbours >= 1, "--neighbours", self.neighbours, "at least 1")
        _require(self.neighbour_epochs >= 0, "--neighbour-epochs", self.neighbour_epochs, "0 or more")
        _require(0 <= self.neighbour_alpha < 1, "--neighbour-alpha", self.neighbour_alpha, "from 0 to below 1")
        _require(self.ramp_epochs >= 1, "--ramp-epochs", self.ramp_epochs, "at least 1")
        _require(self.mixture_steps >= 1, "--mixture-steps", self.mixture_steps, "at least 1")
        _require(self.loss_history >= 1, "--loss-history", self.loss_history, "at least 1")
        averaged = self.loss_history > 1
        _require(
            not averaged or self.split in ("mixture1d", "mixture2d"),
            "--loss-history",
            self.loss_history,
            f"1 with --split {self.split}, which fits no mixture",
        )
        _require(
            not averaged or not self.epoch_images,
            "--loss-history",
            self.loss_history,
            "1 with --epoch-images: other samples have losses in each epoch",
        )
        _require(self.warmup_images >= 0, "--warmup-images", self.warmup_images, "0 or more")
        _require(0 <= self.warmup_clip < math.inf, "--warmup-clip", self.warmup_clip, "0 or more")
        for name in ("sharpen", "beta", "neighbour_sharpness"):
            _require(_positive(getattr(self, name)), _flag(name), getattr(self, name), "above 0")
        _require(
            self.lambda_u == "auto" or 0 <= self.lambda_u < math.inf, "--lambda-u", self.lambda_u, "0 or more, or auto"
        )
        for name in ("clean_threshold", "prototype_momentum", "cluster_vote", "neighbour_votes"):
            _require(0 <= getattr(self, name) <= 1, _flag(name), getattr(self, name), "from 0 to 1")

    def epoch_cost(self, epoch: int) -> float:
        """Forward passes of a sample; a step's backward pass counts as two."""
        contrasts = self.contrast != "none"
        if self.finishes(epoch):
            return 3.0
        if epoch < self.warmup_epochs:
            waits = self.waits_with_contrast and 2 * epoch < self.warmup_epochs
            return 3.0 + (6.0 / self.contrast_every if contrasts and self.warmup_contrast and not waits else 0.0)
        learned = 18.0 if self.guess == "step" else 6.0  # two views and as many guesses or more, or one view
        return learned + (12.0 / self.contrast_every if contrasts else 0.0)

    @property
    def waits_with_contrast(self) -> bool:
        """Whether the first half of warm-up is plain, and shows if there is need for contrast."""
        return self.contrast_above > 0 and self.contrast != "none" and 0 < self.warmup_epochs <= 2 * PLAIN_EPOCHS

    @property
    def judges_at_the_end(self) -> bool:
        """Whether the last epochs are few enough for their networks to be judges, and not witnesses, of what they
        learned (docs/figures.md, "Hard images")."""
        return self.finish_epochs <= LATE_EPOCHS

    def finishes(self, epoch: int) -> bool:
        """Whether it is one of the last epochs, on corrected labels."""
        return epoch >= self.epochs - self.finish_epochs

    @property
    def scheduled_epochs(self) -> int:
        """Those before the last ones, which have a rate of their own."""
        return self.epochs - self.finish_epochs

    def learning_rate(self, epoch: int) -> float:
        """By the schedule; the last epochs on corrected labels begin at a part of the full rate and end at none."""
        if not self.finishes(epoch):
            return super().learning_rate(epoch)
        done = 1 - (self.epochs - epoch) / self.finish_epochs
        return FINISH_RATE * self.lr * (1 + math.cos(math.pi * done)) / 2

    def trust_in_networks(self, epoch: int) -> float:
        """From 0 at the end of warm-up to 1 at `neighbour_epochs`: whose word counts in --split neighbours."""
        span = max(1, self.neighbour_epochs - self.warmup_epochs)
        return min(max((epoch - self.warmup_epochs) / span, 0.0), 1.0)


CONFIGS: dict[str, type[Config]] = {
    "cross-entropy": CrossEntropyConfig,
    "mixup": MixUpConfig,
    "co-teaching": CoTeachingConfig,
    "co-teaching-plus": CoTeachingConfig,
    "jocor": JoCoRConfig,
    "dividemix": CoDivideConfig,
    "elr": ELRConfig,
    "elr-plus": ELRConfig,
    "unicon": CoDivideConfig,
    "plremix": CoDivideConfig,
}


def config_class(method: str) -> type[Config]:
    """The settings that a method has."""
    if method not in CONFIGS:
        raise InputError(f"there is no method {method!r}; choose one of {', '.join(CONFIGS)}")
    return CONFIGS[method]


def from_dict(values: dict[str, Any]) -> Config:
    """The config behind `as_dict`; anything unknown or of another kind is an error."""
    kind = config_class(str(values.get("method")))
    known = {field.name for field in fields(kind)}
    if unknown := sorted(set(values) - known):
        raise InputError(f"unknown settings for the method {values['method']!r}: {', '.join(unknown)}")
    hints = _hints(kind)
    return kind(**{name: _from_json(name, value, hints[name]) for name, value in values.items()})


def read_config(path: Path) -> Config:
    """A run's `config.json`, as a config to run again."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"the config {path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"the config {path} is not JSON: {error}") from error
    if not isinstance(values, dict) or values.get("schema_version") != SCHEMA_VERSION:
        raise InputError(f"{path} is not a config.json of a run (schema_version {SCHEMA_VERSION})")
    return from_dict({name: value for name, value in values.items() if name not in ("schema_version", "versions")})


def parse_time(text: str, name: str = "--time-budget") -> float:
    """`90s`, `30m`, `1h30m`, `2d` in seconds; a number without a unit could be anything and is refused."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise InputError(f"{name} must look like 90s, 30m, 1h30m or 2h, with a unit, got {text!r}")
    seconds = sum(float(number) * UNITS[unit] for number, unit in parts)
    if not 0 < seconds < math.inf:
        raise InputError(f"{name} must be a time above 0, such as 90s, 30m or 2h, got {text!r}")
    return seconds


def _hints(kind: type[Config]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _choices(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if getattr(hint, "__origin__", None) is Literal else ()


def _from_json(name: str, value: Any, hint: Any) -> Any:
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if value is None and type(None) in kinds:
        return None
    for kind in kinds:
        if kind is Path and isinstance(value, str):
            return Path(value)
        if kind == tuple[int, ...] and isinstance(value, list) and all(type(item) is int for item in value):
            return tuple(value)
        if kind == tuple[float, ...] and isinstance(value, list) and all(type(item) in (int, float) for item in value):
            return tuple(map(float, value))
        if kind is float and type(value) in (int, float):
            return float(value)
        if (kind in (int, bool, str) and type(value) is kind) or value in _choices(kind):
            return value
        if kind is hint and _choices(kind):
            return value  # the config itself says which there are
    raise InputError(f"the setting {name!r} cannot be {value!r}")


def _require(condition: bool, flag: str, value: object, expected: str) -> None:
    if not condition:
        shown = ",".join(map(str, value)) if isinstance(value, tuple) else value
        raise InputError(f"{flag} must be {expected}, got {shown}")


def _flag(field: str) -> str:
    return "--" + field.replace("_", "-")


def _positive(value: float) -> bool:
    return 0 < value < math.inf


def _rising(epochs: tuple[int, ...]) -> bool:
    return all(epoch >= 0 for epoch in epochs) and list(epochs) == sorted(epochs)
