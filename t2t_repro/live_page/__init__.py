"""Live page: a trained model that translates in the browser."""
