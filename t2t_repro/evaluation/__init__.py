"""How good translations and parses are, by the field's own measures."""
