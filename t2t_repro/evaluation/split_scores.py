"""What a translator reaches on a split: BLEU by both definitions, or a parser's F1."""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, ClassVar

from tqdm import tqdm

from t2t_repro.evaluation.bleu import paper_bleu, sacre_bleu
from t2t_repro.evaluation.parseval import parseval
from t2t_repro.problems.trees import TREES, tree_of
from t2t_repro.translation.parser import parse_of, words_of
from t2t_repro.translation.translator import Translation, Translator


@dataclass(frozen=True)
class Score:
    """What a translator reaches on a split."""

    figure: ClassVar[str] = "BLEU"

    bleu: float  # sacreBLEU, cased, 13a.
    signature: str  # sacreBLEU's own description of how it was computed.
    paper_bleu: float  # The paper's figure: tokenised, compounds split.
    paper_signature: str  # How that was computed.
    sentences: int  # Sentences scored.
    tokens: int  # Subwords of the translations, EOS included.
    seconds: float  # Time spent translating.
    # newstest2014's second figure: against the official reference, where `paper_bleu`
    # has a reference with ASCII quotes. None for other test sets.
    paper_bleu_original_quotes: float | None = None
    paper_signature_original_quotes: str | None = None

    @property
    def value(self) -> float:
        """The figure that one model is compared with another by."""
        return self.bleu

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields by name."""
        return asdict(self)

    def figures(self) -> str:
        """Describes the figures for people, each named for what it is."""
        text = (
            f"BLEU {self.bleu:.2f}  {self.signature}\n"
            f"the paper's BLEU {self.paper_bleu:.2f}  {self.paper_signature}"
        )
        if self.paper_bleu_original_quotes is not None:
            text += (
                "\nthe paper's BLEU, original quotes "
                f"{self.paper_bleu_original_quotes:.2f}  "
                f"{self.paper_signature_original_quotes}"
            )
        return text

    def text(self) -> str:
        """Describes the score for people, its speed included."""
        return f"{self.figures()}\n{speed(self.sentences, self.tokens, self.seconds)}"


@dataclass(frozen=True)
class ParseScore:
    """What a parser reaches on a split, in percent as EVALB counts with COLLINS.prm."""

    figure: ClassVar[str] = "F1"

    f1: float  # Harmonic mean of labelled recall and precision, every output repaired.
    recall: float  # Share of the treebank's brackets that were found.
    precision: float  # Share of the brackets found that are the treebank's.
    complete_match: float  # Share of sentences whose brackets are all right.
    # Share of words, punctuation left out, with the right part of speech.
    tagging: float
    # Sentences that EVALB leaves out of these figures, because tags of punctuation make
    # them differ in length.
    errors: int
    f1_errors_as_0: float  # F1 if nothing was found in those.
    repaired: int  # Sentences for which the search found no tree over the words.
    repaired_brackets: int  # Of those, how many for constituents that did not match.
    repaired_tags: int  # How many for parts of speech that did not suit the words.
    # F1 if nothing was found where repair or EVALB failed: what the model reaches by
    # itself.
    f1_repaired_as_0: float
    sentences: int  # Sentences scored.
    tokens: int  # Subwords of the outputs, EOS included.
    seconds: float  # Time spent parsing.

    @property
    def value(self) -> float:
        """The figure that one model is compared with another by."""
        return self.f1_errors_as_0

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields by name."""
        return asdict(self)

    def figures(self) -> str:
        """Describes the figures for people, each named for what it is."""
        return (
            f"F1 {self.f1:.2f}  recall {self.recall:.2f}  precision "
            f"{self.precision:.2f}  complete match {self.complete_match:.2f}  tagging "
            f"{self.tagging:.2f}  (EVALB, COLLINS.prm, {self.errors:,} errors)\n"
            f"F1 {self.f1_repaired_as_0:.2f} with the {self.repaired:,} of "
            f"{self.sentences:,} outputs counted as 0 that needed repair (brackets "
            f"{self.repaired_brackets:,}, parts of speech {self.repaired_tags:,})"
        )

    def text(self) -> str:
        """Describes the score for people, its speed included."""
        return f"{self.figures()}\n{speed(self.sentences, self.tokens, self.seconds)}"


AnyScore = Score | ParseScore


def kind_of_score(target_lang: str) -> type[AnyScore]:
    """Returns how targets of a language are scored."""
    return ParseScore if target_lang == TREES else Score


def hypotheses_wanted(target_lang: str, beam_size: int) -> int:
    """Returns how many hypotheses a score needs; a parser's are searched for a tree."""
    return beam_size if target_lang == TREES else 1


def figures_of(result: Mapping[str, Any]) -> str | None:
    """Describes the figures of a training's result; None if it was not scored.

    Results of earlier versions lack the fields that have a default.
    """
    for kind in (Score, ParseScore):
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
    """Translates at least one source and scores the results against the targets.

    With `target_lang` `TREES` the references are linearised trees (UserError if one is
    none), and the translations returned are trees over the words.
    """
    sources = [source for source, _ in pairs]
    references = [target for _, target in pairs]
    if target_lang == TREES:
        sources = [" ".join(words_of(source)) for source in sources]
        references = list(map(tree_of, sources, references))
    translations, seconds = translate(translator, sources, batch_size, show_progress)
    if target_lang == TREES:
        return _parse_score(sources, references, translations, seconds)
    hypotheses = [translation.text for translation in translations]
    sacre = sacre_bleu(hypotheses, references)
    paper = paper_bleu(hypotheses, references, target_lang)
    official = paper.original_quotes
    result = Score(
        bleu=sacre.score,
        signature=sacre.signature,
        paper_bleu=paper.score,
        paper_signature=paper.signature,
        sentences=len(pairs),
        tokens=sum(translation.tokens for translation in translations),
        seconds=seconds,
        paper_bleu_original_quotes=official.score if official else None,
        paper_signature_original_quotes=official.signature if official else None,
    )
    return result, translations


def translate(
    translator: Translator,
    sources: Sequence[str],
    batch_size: int = 32,
    show_progress: bool = True,
) -> tuple[list[Translation], float]:
    """Translates all sources at once; also returns how many seconds it took."""
    began = time.monotonic()
    # Drawn on terminals only; a log file gets the result alone.
    hide = not show_progress or not sys.stderr.isatty()
    with tqdm(total=len(sources), unit=" sentences", disable=hide) as bar:
        translations = list(
            translator.translate_lines(
                sources,
                batch_size,
                window=len(sources),
                progress=lambda lines, tokens: bar.update(lines),
            )
        )
    return translations, time.monotonic() - began


def _parse_score(
    sources: Sequence[str],
    trees: Sequence[str],
    outputs: Sequence[Translation],
    seconds: float,
) -> tuple[ParseScore, list[Translation]]:
    """Scores a parser's outputs against trees; also returns the trees they became."""
    parses = [
        parse_of(source.split(), output)
        for source, output in zip(sources, outputs, strict=True)
    ]
    report = parseval(trees, [parse.tree for parse in parses])
    alone = parseval(trees, ["" if p.needed else p.tree for p in parses])
    found = ParseScore(
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
        f1_repaired_as_0=alone.failures_as_zero.f1,
        sentences=len(outputs),
        tokens=sum(output.tokens for output in outputs),
        seconds=seconds,
    )
    parsed = [
        output._replace(text=parse.tree, others=())
        for output, parse in zip(outputs, parses, strict=True)
    ]
    return found, parsed


def speed(sentences: int, tokens: int, seconds: float) -> str:
    """Says in one line how fast so much was translated."""
    return (
        f"{sentences:,} sentences in {seconds:.1f} s, "
        f"{tokens / max(seconds, 1e-9):,.0f} tokens/s"
    )
