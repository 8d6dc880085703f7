"""Images and labels in, batches of views out."""
