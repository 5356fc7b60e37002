"""Files of translators and corpora: readers of sentence pairs, one per format."""
