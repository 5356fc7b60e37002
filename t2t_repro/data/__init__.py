"""Encoded shards: encoding of text, files on disk and access to pairs."""
