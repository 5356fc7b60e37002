"""What the commands share: flags, errors in one line, progress."""
