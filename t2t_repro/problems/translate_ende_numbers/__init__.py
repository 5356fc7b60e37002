"""Built-in corpus of English number phrases with German translations.

The sentence pairs are generated from a seed in a second or two. The sentences contain
numbers, ordinals, dates, clock times and prices. Half of the inputs are short, like
those that people type into a demo: single phrases and clauses of a few words, with
varying capitalization and full stops. German inflects, compounds and reorders words,
so that word-by-word translation does not solve the task.
"""

from t2t_repro.problems.translate_ende_numbers.corpus import TranslateEndeNumbers

__all__ = ["TranslateEndeNumbers"]
