"""One file a kind of source; each gives LabelledImages."""
