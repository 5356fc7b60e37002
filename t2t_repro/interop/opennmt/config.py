"""OpenNMT-tf's configuration (data.yml): vocabularies, text and search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from t2t_repro.interop.formats.text import read_text
from t2t_repro.interop.numbers import number, whole_number
from t2t_repro.interop.vocabulary import (
    END,
    PADDING,
    UNKNOWN,
    Vocabularies,
    Vocabulary,
    read_piece_model,
)
from t2t_repro.system.errors import UserError

BLANK, START = "<blank>", "<s>"
# What "params" means here, with OpenNMT-tf's defaults.
_SEARCH: dict[str, float] = {
    "beam_width": 1,
    "length_penalty": 0.0,
    "maximum_decoding_length": 250,
}
# What else is of the search there, and what it has to be for one without it.
_OTHER_SEARCH: dict[str, tuple[Any, ...]] = {
    "coverage_penalty": (None, 0),
    "minimum_decoding_length": (None, 0),
    "sampling_topk": (None, 1),
    "decoding_noise": (None, []),
    "replace_unknown_target": (None, False),
}
_SIDES = ("source", "target")


@dataclass(frozen=True)
class Config:
    """What is read of the configuration.

    Attributes:
        files: for messages.
        folders: where the files that it names may lie.
        data: its section of this name.
        params: its section of this name.
        marks: whether a source begins with <s>, and whether it ends with </s>.
    """

    files: str
    folders: tuple[Path, ...]
    data: Mapping[str, Any]
    params: Mapping[str, Any]
    marks: tuple[bool, bool]

    def vocabularies(self) -> Vocabularies:
        """Reads the vocabularies of both sides."""
        paths = [self._vocabulary_file(side) for side in _SIDES]
        source, target = map(_vocabulary, paths)
        return Vocabularies(source, None if source.pieces == target.pieces else target)

    def piece_model(self, side: str, given: str | None) -> bytes:
        """Returns the SentencePiece model of a side.

        `given` is the file's name where the text was cut before OpenNMT-tf read it.
        UserError: the text is cut by something else.
        """
        if given is not None:
            return read_piece_model(Path(given))
        tokenization = self.data.get(f"{side}_tokenization")
        if isinstance(tokenization, str):
            tokenization = _read([self._find(tokenization)])
        if not tokenization:
            raise UserError(
                f"{self.files} has no {side}_tokenization, so that the text was cut "
                f"before OpenNMT-tf read it; give --{side}_spm, the SentencePiece "
                "model that cut it"
            )
        if not isinstance(tokenization, dict):
            raise UserError(
                f"{self.files}: {side}_tokenization must hold a type and params"
            )
        kind = tokenization.get("type", "OpenNMTTokenizer")
        has_type = "type" in tokenization
        params = tokenization.get("params", {}) if has_type else tokenization
        if not isinstance(params, dict):
            raise UserError(f"{self.files}: the params of {kind} must hold keys")
        return read_piece_model(self._find(self._piece_file(side, kind, params)))

    def _piece_file(self, side: str, kind: Any, params: Mapping[str, Any]) -> Any:
        """Returns the SentencePiece model's name; UserError if more cuts the text."""
        if kind == "SentencePieceTokenizer":
            return params.get("model")
        # Sampled pieces are of training.
        allowed = ("mode", "sp_model_path", "sp_nbest_size", "sp_alpha")
        others = [f"{k}: {v}" for k, v in params.items() if v and k not in allowed]
        if kind != "OpenNMTTokenizer" or params.get("mode") != "none" or others:
            mode = f"mode: {params.get('mode', 'conservative')}"
            told = ", ".join([f"type: {kind}", mode, *others])
            raise UserError(
                f"{self.files}: {side}_tokenization ({told}) is not supported here; "
                "there is SentencePiece alone (type: SentencePieceTokenizer, or "
                "OpenNMTTokenizer with mode: none and sp_model_path)"
            )
        return params.get("sp_model_path")

    def search(self) -> dict[str, Any]:
        """Returns the hyper-parameters of the search."""
        given = {k: v for k, v in self.params.items() if v is not None}
        given = _SEARCH | given

        def whole(name: str) -> int:
            return whole_number(self.files, name, given[name])

        return {
            "search": "opennmt",
            "beam_size": max(whole("beam_width"), 1),
            "alpha": number(self.files, "length_penalty", given["length_penalty"]),
            "decode_length_factor": 0.0,
            "decode_extra_length": whole("maximum_decoding_length"),
        }

    def search_left(self) -> list[str]:
        """Names the settings of the search that the one here does not have."""
        return [
            f"{name}={self.params[name]}"
            for name, without in _OTHER_SEARCH.items()
            if self.params.get(name) not in without
        ]

    def _vocabulary_file(self, side: str) -> Path:
        name = self.data.get(f"{side}_vocabulary")
        if isinstance(name, list | dict):
            raise UserError(
                f"{self.files}: {side}_vocabulary names several files; models of "
                "several inputs are not supported here"
            )
        if name is None:
            raise UserError(
                f"{self.files} has no {side}_vocabulary in its section data; give the "
                "configuration that the model was trained with"
            )
        return self._find(name)

    def _find(self, name: Any) -> Path:
        """Returns a file that is named: its path may be another machine's."""
        if not isinstance(name, str) or not name:
            raise UserError(f"{self.files}: {name!r:.40} is no name of a file")
        places = [Path(name)]
        for folder in self.folders:
            places += [folder / name, folder / Path(name).name]
        for place in places:
            if place.is_file():
                return place
        raise UserError(
            f"{self.files} names {name}, which is neither there nor beside it; put it "
            "into the same folder"
        )


def read_config(
    files: Sequence[str], folder: Path, auto_marks: bool, auto: bool
) -> Config:
    """Reads configurations, of which a later one has priority.

    Args:
        files: their names.
        folder: of the checkpoint, where named files may lie, too.
        auto_marks: whether the model's automatic configuration ends a source.
        auto: whether it was used.

    Raises:
        UserError: a file cannot be read, is no YAML, or describes what is not
            supported here.
    """
    paths = [Path(name) for name in files]
    config, where = _read(paths), ", ".join(files)
    sections: dict[str, dict[str, Any]] = {}
    for name in ("data", "params"):
        section = config.get(name) or {}
        if not isinstance(section, dict):
            raise UserError(f"{where}: {name} must hold lines of the form 'key: value'")
        sections[name] = section
    data, params = sections["data"], sections["params"]
    if auto:
        params = {"beam_width": 4} | params
    controls = data.get("source_sequence_controls")
    if controls is None:
        controls = {"end": auto and auto_marks}
    if not isinstance(controls, dict):
        raise UserError(f"{where}: source_sequence_controls must hold start and end")
    folders = (*(path.parent for path in paths), folder, folder / "assets")
    marks = bool(controls.get("start")), bool(controls.get("end"))
    return Config(where, folders, data, params, marks)


def _read(paths: list[Path]) -> dict[str, Any]:
    """Reads YAML files, each over the one before, section by section."""
    config: Any = {}
    for path in paths:
        text = read_text(path)
        try:
            found = yaml.safe_load(text)
        except (ValueError, yaml.YAMLError, RecursionError):
            raise UserError(f"{path} is no YAML; it is damaged, or cut off") from None
        if not isinstance(found, dict):
            raise UserError(f"{path}: must hold lines of the form 'key: value'")
        for name, section in found.items():
            old = config.get(name)
            both = isinstance(old, dict) and isinstance(section, dict)
            config[name] = old | section if both else section
    return config


def _vocabulary(path: Path) -> Vocabulary:
    """Reads a vocabulary, a piece on each line; <unk> has the row after the last."""
    text = read_text(path)
    # Other line breaks may be pieces.
    pieces = [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]
    if pieces[:3] != [BLANK, START, END]:
        raise UserError(
            f"{path}: a vocabulary of OpenNMT-tf begins with {BLANK}, {START} and "
            f"{END}, a line each; make one of SentencePiece's with onmt-build-vocab"
        )
    # No text spells a piece with a space in it.
    named = [f"{p} listed" if p in (UNKNOWN, PADDING) else p for p in pieces]
    if len(set(named)) < len(named):
        twice = next(piece for piece in named if named.count(piece) > 1)
        raise UserError(f"{path} has the piece {twice!r} twice; it is another's")
    return Vocabulary(path, (*named, UNKNOWN))
