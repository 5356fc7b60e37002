"""TMX 1.1 to 1.4b, the exchange format of translation memories.

A unit without a translation gets a variant in the target language. Source: TMX 1.4b,
sections "Elements" and "Content markup" (LISA).
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Sequence

from t2t_repro.formats.documents.document import (
    Document,
    Edit,
    Request,
    make_segment,
)
from t2t_repro.formats.documents.messages import continues_always
from t2t_repro.formats.documents.xml_text import Element, elements, escape, read_xml
from t2t_repro.formats.inline_codes import TMX_CODES
from t2t_repro.formats.languages import match
from t2t_repro.system.errors import UserError

_LANGUAGE = re.compile(r"<tuv\s[^>]*?\b(?:xml:)?lang\s*=\s*[\"']([^\"']+)")


def read_tmx(data: bytes, request: Request) -> Document:
    """Reads TMX; see `FORMATS`."""
    text = read_xml(data, request.path)
    source_lang, target_lang = request.source_lang, request.target_lang
    if source_lang is None or target_lang is None:
        raise UserError("TMX needs --source_lang and --target_lang")
    counts = Counter(_LANGUAGE.findall(text.text))
    written = [code for code, _ in counts.most_common() if match(target_lang, code)]
    code = [*written, target_lang][0]
    segments = []
    found = False
    for number, unit in enumerate(elements(text.text, ("tu",)), 1):
        variants = [child for child in unit.children if child.tag == "tuv"]
        source = _choose(variants, source_lang)
        target = _choose([each for each in variants if each is not source], target_lang)
        seg, old = (each and each.find("seg") for each in (source, target))
        if source is None or seg is None or not seg.has_text():
            continue
        found = True
        if old is not None and (request.retranslate or not old.has_text()):
            write = functools.partial(old.fill, values={})
        elif target is None:
            write = functools.partial(_add, source, seg, variants[-1].end, code)
        else:
            continue
        name = unit.attributes.get("tuid", f"#{number}")
        pieces = seg.pieces(TMX_CODES, _pair)
        segments.append(
            make_segment(text, name, pieces, write, escape, continues_always)
        )
    if not found:
        raise UserError(
            f"{request.path}: no unit in {source_lang}, only in "
            f"{', '.join(counts) or 'no language'}; choose another model or give "
            "--source_lang"
        )
    return Document(text, segments)


def _add(
    source: Element, seg: Element, end: int, language: str, content: str
) -> list[Edit]:
    """Returns the insertion of a variant that looks like that of the source."""
    name = "xml:lang" if "xml:lang" in source.attributes else "lang"
    after = source.document[seg.end : source.inner_end]
    variant = (
        f'{source.margin()}<tuv {name}="{language}">{seg.margin()}'
        f"<seg>{content}</seg>{'' if after.strip() else after}</tuv>"
    )
    return [Edit(end, end, variant)]


def _choose(variants: Sequence[Element], language: str) -> Element | None:
    """Returns the first variant that matches a language best; None for no match."""
    ranks = [
        match(language, attributes.get("xml:lang", attributes.get("lang", "")))
        for attributes in (variant.attributes for variant in variants)
    ]
    best = max(ranks, default=0)
    return variants[ranks.index(best)] if best else None


def _pair(code: Element) -> tuple[str, str]:
    """Returns the names of the pairs that a code opens and closes; "" for none."""
    name = code.attributes.get("i", "")
    return (name * (code.tag == "bpt"), name * (code.tag == "ept"))
