"""The built-in corpus: English number phrases into German words.

Nothing is downloaded: the sentence pairs are generated from a seed, in a second
or two. Five kinds of phrase are embedded in sentences: numbers, ordinals, dates,
clock times and prices. Half of the inputs are short, as a visitor types them: a phrase
by itself, a clause of a few words, capitals and full stops as they come. The German
side inflects, compounds and reorders as German does, so that copying words in order
does not solve the task.
"""

from t2t_repro.problems.translate_ende_numbers.corpus import TranslateEndeNumbers

__all__ = ["TranslateEndeNumbers"]
