"""Backbones, the network made of one, and its file form."""

from plremix.networks.files import MODEL_FILE, Ensemble, load, model_bytes
from plremix.networks.network import BACKBONES, Architecture, Network, Outputs, Shape, build_network
from plremix.networks.weights import load_backbone, starting_weights

__all__ = [
    "BACKBONES",
    "MODEL_FILE",
    "Architecture",
    "Ensemble",
    "Network",
    "Outputs",
    "Shape",
    "build_network",
    "load",
    "load_backbone",
    "model_bytes",
    "starting_weights",
]
