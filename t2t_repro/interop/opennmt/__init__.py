"""Models that OpenNMT-tf trained, and SavedModels that this package exported."""
