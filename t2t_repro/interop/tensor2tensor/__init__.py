"""Models that tensor2tensor trained."""
