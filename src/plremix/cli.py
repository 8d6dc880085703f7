"""The command line: one small function a command; it parses, calls one function of ours, and prints.

Torch is imported only once the flags are known to be good, so that help and errors answer at once.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import itertools
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, make_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_type_hints

import tyro

from plremix import __version__, recipes
from plremix.config import CONFIGS, CoDivideConfig, Config, Integers, parse_time, read_config
from plremix.errors import InputError, some_of
from plremix.memory import keep_freed_memory

if TYPE_CHECKING:
    from plremix.data.dataset import LabelledImages

Arguments = list[str]
Parsed = TypeVar("Parsed")
Flags = TypeVar("Flags", bound="RunFlags")
MISSING = ("nan", "none", "null", "na", "n/a", "<na>", "nat")  # what people write for a label that is not there
NO_MEMORY = "out of memory|allocate memory|Storage size calculation overflowed"  # as torch says it
NO_BRACES = str.maketrans("", "", "{}")
OWN_FILES = ("data", "test", "noise_file")  # settings that are paths of the user's


def main(arguments: Sequence[str] | None = None) -> int:
    """The program; returns the exit status: 0 done, 2 bad input, 130 interrupted."""
    words = [_dashed(word) for word in (sys.argv[1:] if arguments is None else arguments)]
    keep_freed_memory()
    try:
        return _dispatch(words)
    except InputError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except OSError as error:  # a full disk, a folder that went away
        if isinstance(error, BrokenPipeError):  # `plremix recipes | head`
            sys.stderr.close()
            return 0
        place = f" ({error.filename})" if error.filename else ""
        kept = "; what was finished is kept, --resume goes on" if words[0] in ("train", "clean", "demo") else ""
        print(f"error: {error.strerror or error}{place}{kept}", file=sys.stderr)
        return 2
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not re.search(NO_MEMORY, str(error)):
            raise  # torch has no error of its own for it
        print("error: out of memory; a smaller --batch-size, --image-size or --network needs less", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; the same command with --resume goes on from the last finished epoch", file=sys.stderr)
        return 130


def _dispatch(words: Arguments) -> int:
    if "--version" in words:
        print(f"plremix {__version__}")
        return 0
    if not words or words[0] in ("-h", "--help"):
        print(USAGE.strip())
        return 0
    if words[0] not in COMMANDS:
        raise InputError(f"there is no command {words[0]!r}; choose one of {', '.join(COMMANDS)}")
    COMMANDS[words[0]](words[1:])
    return 0


# --- commands ---


@dataclass(frozen=True)
class RunFlags:
    """Where a run goes and how much it says."""

    out: Path | None = None
    """The run folder; default: runs/<recipe>-<method>-seed<seed>."""
    resume: bool = False
    """Go on with the run in the folder, from its last finished epoch."""
    quiet: bool = False
    """No progress, no table."""


@dataclass(frozen=True)
class TrainFlags(RunFlags):
    """Where a run goes, and what it starts from instead of a recipe."""

    config: Path | None = None
    """A run's config.json, instead of a recipe."""


@dataclass(frozen=True)
class CleanFlags(RunFlags):
    """Where a run goes, how long it may take, and what is made of it."""

    time_budget: str | None = None
    """Fit the number of epochs to this time: 90s, 30m, 2h; --epochs is then the most."""
    export_folder: Path | None = None
    """Build a tree of links by corrected label here; the originals stay as they are."""


@dataclass(frozen=True)
class PredictFlags:
    """Each PATH is an image or a folder of images. The id of an image is its path relative to PATH, or its name if PATH
    is the image; where there are several PATHs, it is the path as given (and, of a folder, what is below it)."""

    out: Path | None = None
    """A CSV file instead of the screen."""
    proba: bool = False
    """Add a column proba_<class> for every class."""
    model: Literal["one", "both"] = "both"
    """One network or both."""


@dataclass(frozen=True)
class ExportFlags:
    """What is written where."""

    format: Literal["onnx"] = "onnx"
    """The kind of file."""
    out: Path | None = None
    """The file; default: the run's whole name and .onnx."""


@dataclass(frozen=True)
class AnalyzeFlags:
    """What is measured, and where it goes."""

    out: Path | None = None
    """Folder of the figures; default: analysis in the run folder (then they are added to the report, too)."""
    batches: int = 50
    """Batches of each network that gradients are taken on."""
    per_layer: bool = False
    """Gradients layer by layer, too."""
    form: Literal["run", "flat", "infonce"] = "run"
    """Form of both contrastive losses: the run's own, FlatNCE or InfoNCE."""
    temperature: float | None = None
    """Temperature of both contrastive losses; None: the run's own."""
    mixture_epochs: Integers = ()
    """Epochs whose mixture is shown, as 11,26,40; empty: after warm-up, in the middle and at the end."""
    embedding: Literal["tsne", "pca"] = "tsne"
    """How embeddings are brought to two dimensions."""


@dataclass(frozen=True)
class DemoFlags(RunFlags):
    """Where the demo goes, and its draw."""

    seed: int = 0
    """Another draw of the noise, the networks and everything else."""
    epochs: int | None = None
    """Length of both runs; None: the recipe's."""


@dataclass(frozen=True)
class TableFlags:
    """Which runs, and in what form."""

    runs: Path = Path("runs")
    """Folder that the finished runs are in, at any depth."""
    format: Literal["text", "md", "csv"] = "text"
    """Text for the screen, Markdown, or CSV with a line a number."""


def train(words: Arguments) -> None:
    """plremix train RECIPE [flags]"""
    flags, config = _train_arguments(words)
    out = flags.out or Path("runs") / f"{config.recipe}-{config.method}-seed{config.seed}"
    config = _from_anywhere(config, out, flags.resume)
    from plremix.training import is_first_process
    from plremix.training import train as run

    summary = run(config, out, resume=flags.resume, progress=_progress(flags.quiet))
    if not flags.quiet and is_first_process():
        _print_table([(config.method, summary)])
        _print_findings(summary.get("findings", []))
        print(f"report: {out / 'report.html'}")


CLEAN_HELP = """
plremix clean PATH [flags]

PATH is a folder with a sub-folder a class, a .csv file with image paths and labels, or an .npz file (x_train, y_train).
Everything is chosen from the images and printed with the expected time; these flags change it:

  --out DIR             run folder (runs/clean-<name of PATH>)
  --test PATH           images with trusted labels, in any of these forms, for the accuracy
  --time-budget 30m     fit the number of epochs to a time with its unit: 90s, 30m, 2h
  --epochs N            the number of epochs itself; beside --time-budget, the most
  --strictness 0..1     flag fewer or more labels (0.5)
  --export-folder DIR   build a tree of links by corrected label; the originals stay as they are
  --resume              go on with the run in the folder, from its last finished epoch
  --quiet               no progress, no plan, no findings
  --image-column NAME   column of a .csv file that holds paths
  --label-column NAME   column of a .csv file that holds labels
  --label-key NAME      array of an .npz file that holds labels (y_train)
  --method NAME         another method, such as cross-entropy or dividemix (plremix)
  --network NAME        preact-resnet-small, preact-resnet18, or the name of a timm model
  --image-size N        pixels that images are brought to
  --batch-size N        samples of a step
  --device NAME         auto, cpu, cuda
  --seed N              another draw of everything (0)

plremix clean --help-all lists every setting of the method.
"""


def clean(words: Arguments) -> None:
    """plremix clean PATH [flags]"""
    if {"-h", "--help"} & set(words):
        print(CLEAN_HELP.strip())
        return
    flags, config = _clean_arguments(words)
    out = flags.out or _clean_folder(config.data)
    config = _from_anywhere(config, out, flags.resume)
    seconds = None if flags.time_budget is None else parse_time(flags.time_budget)
    from plremix.training import budget, check_target, export_tree, load_data
    from plremix.training import train as run
    from plremix.training.folder import RunFolder

    folder, data, source = RunFolder(out), None, Path(config.data)
    folder.check_free(flags.resume)
    if source.is_dir() and out.resolve().is_relative_to(source.resolve()):
        raise InputError(f"the run folder {out} lies inside {source}, whose sub-folders are classes: add --out DIR")
    if flags.export_folder is not None:
        check_target(source, flags.export_folder)
    if seconds is not None and folder.config.exists():
        length = _counted(config.epochs, "epoch", "epochs")
        print(f"the run in {out} keeps its length ({length}): --time-budget is for a new one", file=sys.stderr)
    if not folder.config.exists():
        data = load_data(config)
        expected = budget.expected_seconds(config, data)
        if seconds is not None:
            most = config.epochs if _value_of("--epochs", words) is not None else None
            epochs = budget.epochs_within(config, expected, seconds, most)
            expected *= epochs / config.epochs
            config = recipes.scaled(config, epochs)
        if not flags.quiet:
            _print_plan(config, data, budget.duration(expected))
    summary = run(config, out, resume=flags.resume, progress=_progress(flags.quiet), data=data)
    exported = None
    if flags.export_folder is not None:
        exported = export_tree(folder, source, flags.export_folder)
    if not flags.quiet:
        _print_findings(summary.get("findings", []))
        count = summary["images"]
        flagged = summary["flagged"]
        print(f"{flagged:,} of {count:,} labels look wrong ({flagged / count:.1%})")
        if summary.get("unnamed"):
            print(f"about {summary['noise_rate_estimate']:.0%} probably are, the others are too unsure to be named")
        if summary["last"] is not None:
            mean = f"mean of the last ten epochs: {summary['last']:.1%}"
            print(f"accuracy on the test images: {summary.get('final', summary['last']):.1%} ({mean})")
        print(f"wrong labels, worst first to look at: {folder.report}")
        print(f"lists: {folder.labels}, {folder.corrected}; classifier: {folder.model}")
        if exported is not None:
            print(f"corrected tree: {flags.export_folder} ({exported:,} links)")


def _clean_folder(data: str) -> Path:
    source = Path(data).resolve()  # `.` has a name, too
    return Path("runs") / f"clean-{source.name if source.is_dir() else source.stem}"


def _from_anywhere(config: Config, out: Path, resume: bool) -> Config:
    """Own files by their full paths, so that the run can go on, or be looked at, from any folder. Where a run goes on
    with the files that it began with, they are written as they were then."""
    saved = out / "config.json"
    begun = read_config(saved) if resume and saved.exists() else None
    changes: dict[str, Any] = {}
    for name in OWN_FILES:
        given, before = getattr(config, name), getattr(begun, name, None)
        named = name == "data" and config.recipe != "own"  # a data set, even if there is a folder of its name
        if given is None or named or not Path(given).exists():
            continue
        same = before is not None and Path(before).resolve() == Path(given).resolve()
        changes[name] = before if same else type(given)(Path(given).absolute())
    return replace(config, **changes)


def _print_plan(config: Config, data: LabelledImages, expected: str) -> None:
    """What was found and chosen, and how long it will take."""
    channels, height, width = data.images.shape[1:]
    kind = "grey" if channels == 1 else "colour"
    print(f"{len(data):,} images of {len(data.classes)} classes, {kind}, at {height}x{width} pixels")
    for line in _oddities(data):
        print(line)
    chosen = f"{config.network}, {config.weak_view} and {config.strong_view} views, batches of {config.batch_size}"
    length = _counted(config.epochs, "epoch", "epochs")
    print(f"chosen: {chosen}, {length} (flags of the same names change it: --network, --epochs, ...)")
    waits = isinstance(config, CoDivideConfig) and config.waits_with_contrast
    less = ", less if few labels turn out to be wrong" if waits else ""
    print(f"this takes about {expected} here{less}")


def _oddities(data: LabelledImages) -> list[str]:
    """What may be a mistake in the labels, and is for the user to know."""
    counts = data.given_labels.bincount(minlength=len(data.classes)).tolist()
    lines = []
    if alone := [name for name, count in zip(data.classes, counts, strict=True) if count == 1]:
        classes = _counted(len(alone), "class has", "classes have")
        lines.append(f"{classes} a single image, from which little can be learned: {some_of(alone)}")
    if (empty := counts.count(0)) > len(counts) / 2:
        used = [name for name, count in zip(data.classes, counts, strict=True) if count]
        lines.append(
            f"{empty:,} of {len(counts):,} classes have no image; if {some_of(used)} are all there are, save the "
            "labels as text: y_train.astype(str)"
        )
    if missing := [name for name in data.classes if name.strip().lower() in MISSING]:
        lines.append(f"a class is called {some_of(missing)}: if that means no label, leave those images out")
    return lines


def _counted(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


def predict(words: Arguments) -> None:
    """plremix predict RUN PATH [PATH ...] [flags]"""
    paths, rest = _apart(words, PredictFlags)
    if len(paths) < 2 and not {"-h", "--help"} & set(words):
        raise InputError(
            "plremix predict needs a run folder (or model.safetensors) and images: plremix predict RUN PATH"
        )
    flags = _parse(PredictFlags, rest, "plremix predict RUN PATH [PATH ...]", PredictFlags())
    _check_there(*paths)
    if flags.out is not None and not flags.out.parent.is_dir():
        raise InputError(f"--out {flags.out} cannot be written: there is no folder {flags.out.parent}")
    from plremix.inference import predict_files

    text = predict_files(*map(Path, paths), proba=flags.proba, networks=flags.model)
    if flags.out is None:
        print(text, end="")
    else:
        flags.out.write_text(text, encoding="utf-8", newline="")


def export(words: Arguments) -> None:
    """plremix export RUN [flags]"""
    runs, rest = _apart(words, ExportFlags)
    if len(runs) != 1 and not {"-h", "--help"} & set(words):
        raise InputError(f"plremix export needs one run folder or model.safetensors file, got {len(runs)}")
    flags = _parse(ExportFlags, rest, "plremix export RUN", ExportFlags())
    _check_there(*runs)
    from plremix.networks import load
    from plremix.networks.onnx import write_onnx

    place = Path(runs[0]).resolve()  # `.` has a name, too
    out = flags.out or Path(f"{place.stem if place.is_file() else place.name}.onnx")
    write_onnx(load(runs[0]), out)
    print(out)


def analyze(words: Arguments) -> None:
    """plremix analyze RUN [RUN ...] [flags]"""
    runs = [Path(word) for word in itertools.takewhile(lambda word: not word.startswith("-"), words)]
    if not runs and not {"-h", "--help"} & set(words):
        raise InputError("plremix analyze needs a run folder first; several are compared by their learning curves")
    flags = _parse(AnalyzeFlags, words[len(runs) :], "plremix analyze RUN [RUN ...]", AnalyzeFlags())
    _check_there(*runs)
    from plremix import analysis

    if len(runs) > 1:
        common = os.path.commonpath([run.absolute().parent for run in runs])
        done = analysis.compare(runs, flags.out or Path(common) / "analysis")
    else:
        done = analysis.analyze(
            runs[0],
            flags.out,
            batches=flags.batches,
            per_layer=flags.per_layer,
            flat={"run": None, "flat": True, "infonce": False}[flags.form],
            temperature=flags.temperature,
            mixture_epochs=flags.mixture_epochs,
            embedding=flags.embedding,
        )
    if done.table:
        print(done.table)
    for path in done.written:
        print(path)
    for left in done.left:
        print(f"no {left.name}: {left.why}")
    _print_findings([finding._asdict() for finding in done.findings])


def demo(words: Arguments) -> None:
    """plremix demo [flags]"""
    flags = _parse(DemoFlags, words, "plremix demo", DemoFlags())
    seed = ["--seed", str(flags.seed)]
    runs = [
        _parse_settings(recipes.build("digits-sym-80", method, flags.epochs), seed)
        for method in ("cross-entropy", "plremix")
    ]
    from plremix.training import train as run
    from plremix.training.folder import free_folder, last_folder

    usual = Path("runs") / "demo"
    out = flags.out or (last_folder(usual) if flags.resume else free_folder(usual))
    if not flags.quiet:
        print("1,400 hand-written digits, 80 % of the labels drawn at random (72 % wrong), 397 clean ones to test on")
    rows = []
    for config in runs:
        if not flags.quiet:
            print(f"{config.method}, {_counted(config.epochs, 'epoch', 'epochs')}")
        folder = out / config.method
        rows.append((config.method, run(config, folder, resume=flags.resume, progress=_progress(flags.quiet))))
    if not flags.quiet:
        _print_table(rows)
        for method, summary in rows:
            _print_findings(summary.get("findings", []), method)
        print(f"report: {out / 'plremix' / 'report.html'}")


def show_recipes(words: Arguments) -> None:
    """plremix recipes [NAME]"""
    if words[:1] in (["-h"], ["--help"]):
        print("usage: plremix recipes [NAME]   the recipes by table; with a name, its settings")
        return
    if len(words) > 1 or any(word.startswith("-") for word in words):
        raise InputError(f"plremix recipes takes one name at most, got {' '.join(words)}")
    if words:
        for name, value in recipes.build(words[0]).as_dict().items():
            print(f"{name:22} {_shown(value)}")
        return
    for name in dict.fromkeys(recipe.table for recipe in recipes.RECIPES.values()):
        print(f"{name}:")
        for recipe in recipes.RECIPES.values():
            if recipe.table == name:
                print(f"  {recipe.name:39} {_in_a_line(recipe)}")
    print(f"methods: {', '.join(recipes.METHODS)} (--method)")


def _in_a_line(recipe: recipes.Recipe) -> str:
    """Method, noise, length, the weight that depends on the noise, and what makes the row; each said once."""
    config = recipes.build(recipe.name)
    words = [config.method]
    if config.noise != "none":
        words.append(f"{config.noise} {config.noise_ratio:.0%}")
    if config.human_labels != "none":
        words.append(f"human labels {config.human_labels}")
    words.append(f"{config.epochs} epochs")
    if isinstance(config, CoDivideConfig):
        words.append(f"lambda_u {config.lambda_u}")
    changed = {name: value for name, value in recipe.changes.items() if name != "epochs"}
    return ", ".join([*words, *(f"{name} {_shown(value) or 'none'}" for name, value in changed.items())])


def table(words: Arguments) -> None:
    """plremix table NAME [flags]"""
    from plremix import tables
    from plremix.paper import TABLES

    name = words[0] if words and not words[0].startswith("-") else None
    flags = _parse(TableFlags, words[name is not None :], "plremix table NAME", TableFlags())
    if name not in (*TABLES, "all"):
        given = "a name first" if name is None else f"another name than {name!r}"
        raise InputError(f"plremix table needs {given}: one of {', '.join(TABLES)}, all")
    runs = list(tables.finished_runs(flags.runs)) if flags.runs.exists() or flags.runs != Path("runs") else []
    print(tables.render(list(TABLES) if name == "all" else [name], runs, flags.format), end="")


def _shown(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


COMMANDS: dict[str, Callable[[Arguments], None]] = {
    "demo": demo,
    "clean": clean,
    "predict": predict,
    "export": export,
    "analyze": analyze,
    "train": train,
    "recipes": show_recipes,
    "table": table,
}

USAGE = """
usage: plremix COMMAND [flags]

  demo             PLReMix beside plain cross-entropy on digits with 72 % wrong labels, in about two minutes
  clean PATH       own images: a classifier, the wrong labels with corrections, and a report to look at
  predict RUN PATH class and probability for new images: one or several files or folders
  export RUN       the classifier as an ONNX file
  analyze RUN ...  the paper's figures of a run; of several runs, their learning curves
  train RECIPE     a named recipe or own images, any setting overridden by a flag
  recipes [NAME]   the recipes by table; with a name, its settings
  table NAME       finished runs against the paper's table: cifar, tiny-imagenet, clothing1m, webvision, combination,
                   ablation, kappa, all

plremix COMMAND --help shows the flags of a command; plremix --version the version.
"""


# --- from words to settings ---


def _train_arguments(words: Arguments) -> tuple[TrainFlags, Config]:
    """The recipe, the method and the length decide the defaults; then the flags of that one config are read."""
    asks_help = "-h" in words or "--help" in words
    recipe = None
    if words and not words[0].startswith("-"):
        recipe, words = words[0], words[1:]
    file = _value_of("--config", words)
    if recipe is None and file is None and _value_of("--out", words) and "--resume" in words:
        file = str(Path(_value_of("--out", words) or "") / "config.json")
    if recipe is not None and file is not None:
        raise InputError(f"a run starts from the recipe {recipe!r} or from --config {file!r}, not from both")
    if file is not None and not asks_help:
        default = read_config(Path(file))
        method = _value_of("--method", words)
        if method not in (None, default.method):
            raise InputError(f"--config {file} is of the method {default.method!r}; --method cannot change it")
    elif recipe is None and not asks_help:
        raise InputError(
            "plremix train needs a recipe (`plremix recipes` lists them) or an .npz file first, or --config FILE"
        )
    else:
        default = recipes.build(recipe or "digits-sym-80", _value_of("--method", words))
    return _parse_both(TrainFlags(), _at_length(default, words), words, "plremix train RECIPE")


def _clean_arguments(words: Arguments) -> tuple[CleanFlags, Config]:
    """The images decide the defaults; then the flags are read."""
    method = _value_of("--method", words) or "plremix"
    if "--help-all" in words:
        settings = recipes.for_own_images(images=5000, classes=10, side=32, channels=3, gpu=False)
        default, words = recipes.own(Path("PATH"), settings, method), ["--help"]
    else:
        if not words or words[0].startswith("-"):
            raise InputError("plremix clean needs a folder with a sub-folder a class, a .csv or an .npz file first")
        path, words = Path(words[0]), words[1:]
        saved = Path(_value_of("--out", words) or _clean_folder(str(path))) / "config.json"
        if "--resume" in words and saved.exists():  # the run's own settings; a flag that says otherwise is told
            default = read_config(saved)
            if Path(default.data).resolve() != path.resolve():
                raise InputError(f"{saved.parent} holds a run on {default.data}, not on {path}; choose another --out")
            return _parse_both(CleanFlags(), default, words, "plremix clean PATH")
        _check_there(path)
        if (test := _value_of("--test", words)) is not None and not Path(test).exists():
            raise InputError(f"--test {test} does not exist")
        _check_before_looking(method, words)
        from plremix.training import has_gpu, look_at

        image_column, label_column = (_value_of(flag, words) or "" for flag in ("--image-column", "--label-column"))
        seen, classes = look_at(path, image_column, label_column, _value_of("--label-key", words) or "y_train")
        gpu = _value_of("--device", words) != "cpu" and has_gpu()
        settings = recipes.for_own_images(seen.images, classes, seen.side, seen.channels, gpu)
        default = recipes.own(path, settings, method)
    return _parse_both(CleanFlags(), _at_length(default, words), words, "plremix clean PATH")


def _check_before_looking(method: str, words: Arguments) -> None:
    """What no images could make right is told before any are looked at, which takes torch: flags that neither few
    images nor many would allow."""
    for images in (60, 1_000_000):
        settings = recipes.for_own_images(images, classes=10, side=32, channels=3, gpu=False)
        try:
            default = _at_length(recipes.own(Path("PATH"), settings, method), words)
            flags, _ = _parse_both(CleanFlags(), default, words, "plremix clean PATH")
            break
        except InputError as error:
            refused = error
    else:
        raise refused
    if flags.time_budget is not None:
        parse_time(flags.time_budget)


def _check_there(*paths: str | Path) -> None:
    """Told at once: whatever could open them takes seconds to import."""
    for path in paths:
        if not Path(path).exists():
            raise InputError(f"{path} does not exist")


def _at_length(default: Config, words: Arguments) -> Config:
    """Scaled to `--epochs`, where there is one; what is no number is told when flags are parsed."""
    try:
        epochs = int(_value_of("--epochs", words) or "")
    except ValueError:
        return default
    return recipes.scaled(default, epochs)


def _parse_both(flags: Flags, default: Config, words: Arguments, program: str) -> tuple[Flags, Config]:
    """The flags of a command, and the settings of its config, side by side."""
    both = make_dataclass(
        "Both",
        [
            ("flags", tyro.conf.OmitArgPrefixes[type(flags)]),  # type: ignore[misc]
            ("settings", tyro.conf.OmitArgPrefixes[type(default)]),  # type: ignore[misc]
        ],
        frozen=True,
    )
    parsed: Any = _parse(both, words, program, both(flags, default))
    _check_noise(parsed.settings, words)
    return parsed.flags, parsed.settings


def _check_noise(config: Config, words: Arguments) -> None:
    """Flags of noise that would do nothing, or not what they say."""
    if config.noise == "none" and _value_of("--noise-ratio", words) is not None:
        raise InputError("--noise-ratio does nothing without noise; add --noise symmetric or --noise asymmetric")
    if _value_of("--noise", words) in ("symmetric", "asymmetric") and not config.noise_ratio:
        raise InputError("--noise needs its share too: add --noise-ratio, for example --noise-ratio 0.4")
    if config.noise_file is not None and _value_of("--noise", words) in ("symmetric", "asymmetric"):
        raise InputError("--noise-file has the labels already: leave out --noise, or the file")
    if config.noise != "asymmetric" and _value_of("--noise-map", words):
        raise InputError("--noise-map goes with asymmetric noise; add --noise asymmetric and a --noise-ratio")


def _parse_settings(default: Config, words: Arguments) -> Config:
    return _parse(type(default), words, "plremix", default)


def _parse(kind: type[Parsed], words: Arguments, program: str, default: Parsed) -> Parsed:
    """tyro's flags of a dataclass, with its errors as one line of ours."""
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(kind, args=words, prog=program, default=default)
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        raise InputError(_one_line(complaint.getvalue(), words, _flags_of(kind))) from None


def _flags_of(kind: Any) -> list[str]:
    """Every flag of a dataclass, or of the dataclasses in it."""
    inner = [_flags_of(type_of) for type_of in get_type_hints(kind).values() if is_dataclass(type_of)]
    return [f"--{part.name.replace('_', '-')}" for part in fields(kind)] + list(itertools.chain(*inner))


def _one_line(box: str, words: Arguments, flags: list[str]) -> str:
    """The first paragraph of an error box, without title and frame, and the nearest flag if one is not known."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", box)
    lines = [line.strip("│|+╭╮╰╯ ") for line in text.splitlines()[1:]]
    paragraphs = re.split(r"\n(?:[─-]*\n)+", "\n".join(["", *lines, ""]))
    first = next(" ".join(paragraph.split()) for paragraph in paragraphs if paragraph.strip())
    if number := re.match(r"Error parsing (--\S+): (invalid literal for int|could not convert string to float)", first):
        return f"{number[1]} must be a number, got {_value_of(number[1], words)!r}"
    if several := re.match(r"Error parsing (--\S+): no type matching (\S+) could be", first):
        kinds = [{"INT": "a whole number", "FLOAT": "a number"}.get(kind, kind) for kind in several[2].split("|")]
        return f"{several[1]} must be {' or '.join(kinds).translate(NO_BRACES)}, got {_value_of(several[1], words)!r}"
    unknown = re.match(r"Unrecognized options: (--[\w-]+)", first)
    having = [name for name, kind in CONFIGS.items() if unknown and unknown[1] in _flags_of(kind)]
    if unknown and unknown[1] == "--recipe":
        return "--recipe is no setting: a recipe stands first, as in plremix train digits-sym-80"
    if unknown and having and "--method" in flags:
        return f"{unknown[1]} is no setting here: it goes with --method {', '.join(having)}"
    meant = difflib.get_close_matches(unknown[1], flags, n=1) if unknown else []
    message = re.sub(r"^Error parsing \S+: (?=--)", "", first)
    return f"{message} (perhaps {meant[0]}?)" if meant else message


def _apart(words: Arguments, kind: type[Any]) -> tuple[Arguments, Arguments]:
    """The words that are neither flags of the dataclass nor their values, wherever they stand; and the rest."""
    hints = get_type_hints(kind)
    valued = {flag for flag, part in zip(_flags_of(kind), fields(kind), strict=True) if hints[part.name] is not bool}
    plain: Arguments = []
    rest: Arguments = []
    for before, word in zip(["", *words], words, strict=False):
        (rest if word.startswith("-") or before in valued else plain).append(word)
    return plain, rest


def _dashed(word: str) -> str:
    """A flag with underscores in its name, which is as good, as it is written everywhere else."""
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value if word.startswith("--") else word


def _value_of(flag: str, words: Arguments) -> str | None:
    """What stands behind the last such flag, before the flags are really parsed."""
    value = None
    for index, word in enumerate(words):
        if word == flag and index + 1 < len(words):
            value = words[index + 1]
        elif word.startswith(flag + "="):
            value = word[len(flag) + 1 :]
    return value


# --- output ---


def _progress(quiet: bool) -> Any:
    from plremix.training import progress

    if quiet:
        return progress.Silent
    return progress.Bar if sys.stderr.isatty() else progress.Lines


def _print_table(rows: list[tuple[str, dict[str, Any]]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for column in ("method", "best", "last", "wrong labels found", "of those flagged, wrong", "seconds"):
        table.add_column(column, justify="left" if column == "method" else "right")
    for method, summary in rows:
        found = summary.get("detection") or {}
        shares = [summary["best"], summary["last"], found.get("recall"), found.get("precision")]
        table.add_row(method, *(_percent(share) for share in shares), f"{summary['seconds']:.0f}")
    console = Console()
    console.print(table)
    console.print("best: the best epoch on the test set; last: mean of the last ten epochs")


def _print_findings(findings: list[dict[str, str]], run: str = "this run") -> None:
    """What the doctor found, on standard error: the tables above stay as they are."""
    if findings:
        print(f"{run} went wrong:", file=sys.stderr)
    for finding in findings:
        print(f"- {finding['what']} Try: {finding['advice']}", file=sys.stderr)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
