"""Who is clean: pure functions and values; this room imports nothing else of ours, so that a file can be lifted out."""

from plremix.selection.clusters import vote_in_clusters
from plremix.selection.confidence import ConfidenceThresholds, soft_pseudo_labels
from plremix.selection.doubt import (
    calibrate,
    foretells,
    rate_by_count,
    rate_by_quotas,
    shares_by_count,
    weigh_labels,
    weigh_votes,
)
from plremix.selection.mixture import Mixture, fit_mixture, normalise_losses
from plremix.selection.neighbours import Neighbours, count_labels, nearest_neighbours, spread_labels
from plremix.selection.prototypes import (
    initial_prototypes,
    prototype_logits,
    update_prototypes,
    update_prototypes_one_by_one,
)
from plremix.selection.quotas import fill_quotas
from plremix.selection.verdict import Verdict, judge_labels, judge_together, label_margins

__all__ = [
    "ConfidenceThresholds",
    "Mixture",
    "Neighbours",
    "Verdict",
    "calibrate",
    "count_labels",
    "fill_quotas",
    "fit_mixture",
    "foretells",
    "initial_prototypes",
    "judge_labels",
    "judge_together",
    "label_margins",
    "nearest_neighbours",
    "normalise_losses",
    "prototype_logits",
    "rate_by_count",
    "rate_by_quotas",
    "shares_by_count",
    "soft_pseudo_labels",
    "spread_labels",
    "update_prototypes",
    "update_prototypes_one_by_one",
    "vote_in_clusters",
    "weigh_labels",
    "weigh_votes",
]
