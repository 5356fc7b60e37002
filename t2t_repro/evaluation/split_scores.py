"""Scores of a split: both kinds of BLEU for translations, PARSEVAL for parses."""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar

from sacrebleu.metrics import CHRF
from tqdm import tqdm

from t2t_repro.evaluation.bleu import (
    is_unspaced,
    paper_bleu,
    sacre_bleu,
    select_tokenizer,
)
from t2t_repro.evaluation.metrics import BLEU_KEYS, Figure
from t2t_repro.evaluation.parseval import parseval
from t2t_repro.problems.trees import TREES, build_tree
from t2t_repro.system.interrupts import delay_interrupts
from t2t_repro.texts.translation import Translation
from t2t_repro.translation.parser import choose_parse, split_words
from t2t_repro.translation.translator import Translator


@dataclass(frozen=True)
class Score:
    """Scores of translations."""

    figure: ClassVar[str] = "BLEU"

    bleu: float  # Cased BLEU from sacreBLEU; see `select_tokenizer`.
    signature: str  # Settings of sacreBLEU.
    # BLEU as in the paper: tokenized, with split compounds; None if the language lacks
    # spaces between words.
    paper_bleu: float | None
    paper_signature: str | None  # Settings of `paper_bleu`.
    sentences: int  # Number of sentences.
    tokens: int  # Number of tokens in the translations, including EOS.
    seconds: float  # Decoding time.
    # Score against newstest2014's official reference; `paper_bleu` uses a reference
    # with ASCII quotes. None for other test sets.
    paper_bleu_original_quotes: float | None = None
    paper_signature_original_quotes: str | None = None

    @property
    def value(self) -> float:
        """Main score, for comparisons of models."""
        return self.bleu

    def figures(self) -> str:
        """Returns the named scores as text."""
        values = vars(self)
        figures = (
            Figure(name, values[score], values[signature])
            for name, (score, signature) in BLEU_KEYS.items()
            if values[score] is not None
        )
        return "\n".join(figure.text() for figure in figures)


@dataclass(frozen=True)
class CharacterScore(Score):
    """Scores of translations into a language for which BLEU lacks a tokenizer."""

    figure: ClassVar[str] = "chrF"

    chrf: float = field(kw_only=True)  # chrF from sacreBLEU.
    chrf_signature: str = field(kw_only=True)  # Settings of `chrf`.

    @property
    def value(self) -> float:
        """Main score, for comparisons of models."""
        return self.chrf

    def figures(self) -> str:
        """Returns the named scores as text."""
        return f"chrF {self.chrf:.2f}  {self.chrf_signature}\n{super().figures()}"


@dataclass(frozen=True)
class ParseScore:
    """Scores of parses, in percent, as computed by EVALB with COLLINS.prm."""

    figure: ClassVar[str] = "F1"

    f1: float  # Labelled F1 of the repaired outputs.
    recall: float  # Percentage of the treebank's brackets that occur in the parses.
    precision: float  # Percentage of the parses' brackets that occur in the treebank.
    complete_match: float  # Percentage of sentences with only correct brackets.
    # Percentage of words, without punctuation, with the correct part of speech.
    tagging: float
    # Number of sentences that EVALB excludes from these scores, because wrong tags of
    # punctuation change their length.
    errors: int
    # F1 if the sentences that EVALB excludes count as having no correct brackets.
    f1_errors_as_0: float
    repaired: int  # Number of sentences without a valid tree among the hypotheses.
    repaired_brackets: int  # Number of repaired sentences with unbalanced constituents.
    repaired_tags: int  # Number of repaired sentences with unsuitable tags.
    # F1 if repaired sentences also count as having no correct brackets: a measure of
    # the model without the repair.
    f1_repaired_as_0: float
    sentences: int  # Number of sentences.
    tokens: int  # Number of tokens in the outputs, including EOS.
    seconds: float  # Decoding time.

    @property
    def value(self) -> float:
        """Main score, for comparisons of models."""
        return self.f1_errors_as_0

    def figures(self) -> str:
        """Returns the named scores as text."""
        return (
            f"F1 {self.f1:.2f}  recall {self.recall:.2f}  precision "
            f"{self.precision:.2f}  complete match {self.complete_match:.2f}  tagging "
            f"{self.tagging:.2f}  (EVALB, COLLINS.prm, {self.errors:,} errors)\n"
            f"F1 {self.f1_repaired_as_0:.2f} with the {self.repaired:,} of "
            f"{self.sentences:,} outputs counted as 0 that needed repair (brackets "
            f"{self.repaired_brackets:,}, parts of speech {self.repaired_tags:,})"
        )


AnyScore = Score | ParseScore


def select_score_class(target_lang: str) -> type[AnyScore]:
    """Returns the class of scores for a target language."""
    if target_lang == TREES:
        return ParseScore
    return CharacterScore if is_unspaced(target_lang) else Score


def num_hypotheses(target_lang: str, beam_size: int) -> int:
    """Returns the number of hypotheses per sentence that scoring needs.

    Parsing uses the first hypothesis in the beam that is a valid tree.
    """
    return beam_size if target_lang == TREES else 1


def format_scores(result: Mapping[str, Any]) -> str | None:
    """Returns the scores in a training run's result as text, None if there are none.

    Fields with a default may be missing, because earlier versions did not write them.
    """
    for kind in (CharacterScore, Score, ParseScore):
        required = [field.name for field in fields(kind) if field.default is MISSING]
        if all(name in result for name in required):
            values = {f.name: result[f.name] for f in fields(kind) if f.name in result}
            return kind(**values).figures()
    return None


def evaluate(
    translator: Translator,
    pairs: Sequence[tuple[str, str]],
    target_lang: str,
    batch_size: int = 32,
    show_progress: bool = True,
) -> tuple[AnyScore, list[Translation]]:
    """Translates the sources and scores the translations against the targets.

    Args:
        translator: Translator, with `num_hypotheses` hypotheses per sentence.
        pairs: Sources and targets; at least one pair.
        target_lang: Language code. If `TREES`, the targets are linearised trees.
        batch_size: Number of sentences decoded together.
        show_progress: Whether to show a progress bar on a terminal.

    Returns:
        The score, and the translations; for parsing, their texts are repaired trees.

    Raises:
        UserError: A target for parsing is not a tree.
    """
    sources = [source for source, _ in pairs]
    references = [target for _, target in pairs]
    if target_lang == TREES:
        sources = [" ".join(split_words(source)) for source in sources]
        references = list(map(build_tree, sources, references))
    translations, seconds = translate(translator, sources, batch_size, show_progress)
    if target_lang == TREES:
        return _parse_score(sources, references, translations, seconds)
    hypotheses = [translation.text for translation in translations]
    tokenize = select_tokenizer(target_lang).name
    sacre = sacre_bleu(hypotheses, references, tokenize=tokenize)
    paper = official = None
    if tokenize == "13a":
        paper = paper_bleu(hypotheses, references, target_lang)
        official = paper.original_quotes
    values: dict[str, Any] = {
        "bleu": sacre.score,
        "signature": sacre.signature,
        "paper_bleu": paper and paper.score,
        "paper_signature": paper and paper.signature,
        "sentences": len(pairs),
        "tokens": sum(translation.best.tokens for translation in translations),
        "seconds": seconds,
        "paper_bleu_original_quotes": official and official.score,
        "paper_signature_original_quotes": official and official.signature,
    }
    if not is_unspaced(target_lang):
        return Score(**values), translations
    metric = CHRF()
    values["chrf"] = metric.corpus_score(hypotheses, [references]).score
    values["chrf_signature"] = str(metric.get_signature())
    return CharacterScore(**values), translations


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Computes chrF of translations with sacreBLEU, from 0 to 100."""
    return CHRF().corpus_score(hypotheses, [references]).score


def translate(
    translator: Translator,
    sources: Sequence[str],
    batch_size: int = 32,
    show_progress: bool = True,
) -> tuple[list[Translation], float]:
    """Translates all sources and returns the translations and the time in seconds."""
    start = time.monotonic()
    # Progress bars are for terminals; a log file should contain only the result.
    hide = not show_progress or not sys.stderr.isatty()
    with (
        tqdm(total=len(sources), unit=" sentences", disable=hide) as bar,
        delay_interrupts(lambda lines, _: bar.update(lines)) as progress,
    ):
        lines = translator.translate_lines(sources, batch_size, len(sources), progress)
        translations = list(lines)
    seconds = time.monotonic() - start
    if cut := sum(translation.cut for translation in translations):
        print(
            f"cut to {translator.max_input_length} subwords, EOS included: {cut:,} of "
            f"{len(sources):,} sentences",
            file=sys.stderr,
            flush=True,
        )
    return translations, seconds


def _parse_score(
    sources: Sequence[str],
    trees: Sequence[str],
    outputs: Sequence[Translation],
    seconds: float,
) -> tuple[ParseScore, list[Translation]]:
    """Repairs and scores the outputs of a parsing model.

    Returns the score and the outputs, with their text replaced by the repaired tree.
    """
    parses = [
        choose_parse(source.split(), output)
        for source, output in zip(sources, outputs, strict=True)
    ]
    report = parseval(trees, [parse.tree for parse in parses])
    unrepaired = parseval(trees, ["" if p.needed else p.tree for p in parses])
    score = ParseScore(
        f1=report.all.f1,
        recall=report.all.recall,
        precision=report.all.precision,
        complete_match=report.all.complete_match,
        tagging=report.all.tagging,
        errors=report.all.errors + report.all.skipped,
        f1_errors_as_0=report.failures_as_zero.f1,
        repaired=sum(parse.needed for parse in parses),
        repaired_brackets=sum(parse.brackets for parse in parses),
        repaired_tags=sum(parse.tags for parse in parses),
        f1_repaired_as_0=unrepaired.failures_as_zero.f1,
        sentences=len(outputs),
        tokens=sum(output.best.tokens for output in outputs),
        seconds=seconds,
    )
    parsed = [
        output.replace_texts(parse.tree)
        for output, parse in zip(outputs, parses, strict=True)
    ]
    return score, parsed


def speed(sentences: int, tokens: int, seconds: float) -> str:
    """Returns the number of sentences, the time and the speed in one line."""
    return (
        f"{sentences:,} sentences in {seconds:.1f} s, "
        f"{tokens / max(seconds, 1e-9):,.0f} tokens/s"
    )
