"""Imports of models from other programs, and the export to CTranslate2."""
