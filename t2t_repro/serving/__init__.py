"""The model as a SavedModel that takes and gives plain text."""
