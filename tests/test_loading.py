"""From a model directory to a translator."""

from t2t_repro.loading import load_translator
from t2t_repro.model_dir import ModelDir


def test_a_translator_decodes_as_the_model_says_unless_told_otherwise(trained):
    directory = ModelDir(trained.model_dir)
    translator, path = load_translator(directory)
    assert path == str(trained.model_dir / "averaged")
    assert (translator.beam_size, translator.alpha) == (2, 0.6)
    assert translator.extra_length == 2
    translator, path = load_translator(directory, "latest", beam_size=3, alpha=0.0)
    assert path == str(trained.model_dir / "checkpoints" / "step-00000004")
    assert (translator.beam_size, translator.alpha) == (3, 0.0)


def test_a_loaded_translator_has_the_weights_of_the_checkpoint_asked_for(trained):
    directory = ModelDir(trained.model_dir)
    texts, scores = {}, {}
    for name in ("averaged", "latest"):
        translator, _ = load_translator(directory, name, beam_size=1)
        (found,) = translator.translate_lines(["one two"])
        texts[name], scores[name] = found.text, found.score
    assert scores["averaged"] != scores["latest"]
