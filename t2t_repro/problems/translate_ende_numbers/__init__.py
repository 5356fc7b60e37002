"""The built-in corpus: English number phrases into German words.

Nothing is downloaded: the sentence pairs are generated from a seed, in a second
or two. Five kinds of phrase are embedded in short sentences: numbers, ordinals,
dates, clock times and prices. The German side inflects, compounds and reorders
as German does, so that copying words in order does not solve the task.
"""

from t2t_repro.problems.translate_ende_numbers.corpus import TranslateEndeNumbers

__all__ = ["TranslateEndeNumbers"]
