"""Import of OpenNMT-tf models and of SavedModels that this package exported."""
