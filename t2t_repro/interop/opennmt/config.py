"""Reader of OpenNMT-tf's configuration (data.yml)."""

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
# Supported search settings in "params" with OpenNMT-tf's defaults.
_SEARCH: dict[str, float] = {
    "beam_width": 1,
    "length_penalty": 0.0,
    "maximum_decoding_length": 250,
}
# Unsupported search settings in "params" with the values that disable them.
_UNSUPPORTED_SEARCH: dict[str, tuple[Any, ...]] = {
    "coverage_penalty": (None, 0),
    "minimum_decoding_length": (None, 0),
    "sampling_topk": (None, 1),
    "decoding_noise": (None, []),
    "replace_unknown_target": (None, False),
}
_SIDES = ("source", "target")
# References to references multiply the size of a text, here at most a thousandfold.
_MOST_REFERENCES = 20


@dataclass(frozen=True)
class Config:
    """Configuration of a training run.

    Attributes:
        files: Names of the configuration files, for messages.
        folders: Folders to search for the vocabularies and SentencePiece models.
        data: Section `data`.
        params: Section `params`.
        marks: Whether sources start with <s>, and whether they end with </s>.
    """

    files: str
    folders: tuple[Path, ...]
    data: Mapping[str, Any]
    params: Mapping[str, Any]
    marks: tuple[bool, bool]

    def vocabularies(self) -> Vocabularies:
        """Reads the vocabularies of both sides; if equal, the sides share one."""
        paths = [self._vocabulary_file(side) for side in _SIDES]
        source, target = map(_vocabulary, paths)
        return Vocabularies(source, None if source.pieces == target.pieces else target)

    def piece_model(self, side: str, path: str | None) -> bytes:
        """Returns the contents of a side's SentencePiece model.

        Args:
            side: "source" or "target".
            path: Path of the model, if the text was tokenized before the training;
                None selects the model in the configuration.

        Raises:
            UserError: The file is missing or damaged, or the configured tokenization is
                missing or does not use SentencePiece.
        """
        if path is not None:
            return read_piece_model(Path(path))
        name, data = f"{side}_tokenization", self.data
        if isinstance(file := data.get(name), str):
            data = {name: _read([self._find(file)])}
        tokenization = _section(self.files, data, name)
        if not tokenization:
            raise UserError(
                f"{self.files} lacks {name}; if the text was tokenized before the "
                f"training, give its SentencePiece model with --{side}_spm"
            )
        kind, params = tokenization.get("type", "OpenNMTTokenizer"), tokenization
        if "type" in tokenization:
            params = _section(self.files, tokenization, "params")
        return read_piece_model(self._find(self._piece_file(side, kind, params)))

    def _piece_file(self, side: str, kind: Any, params: Mapping[str, Any]) -> Any:
        """Returns the file name of the SentencePiece model.

        Raises UserError if the tokenizer does anything besides SentencePiece.
        """
        if kind == "SentencePieceTokenizer":
            return params.get("model")
        # The sampling settings affect only training.
        allowed = ("mode", "sp_model_path", "sp_nbest_size", "sp_alpha")
        others = [f"{k}: {v}" for k, v in params.items() if v and k not in allowed]
        if kind != "OpenNMTTokenizer" or params.get("mode") != "none" or others:
            mode = f"mode: {params.get('mode', 'conservative')}"
            settings = ", ".join([f"type: {kind}", mode, *others])
            raise UserError(
                f"{self.files}: {side}_tokenization ({settings}) is not supported; "
                "supported: type SentencePieceTokenizer, or OpenNMTTokenizer with "
                "mode: none and sp_model_path"
            )
        return params.get("sp_model_path")

    def search(self) -> dict[str, Any]:
        """Returns the hyper-parameters of the search.

        Raises:
            UserError: A setting in `params` has an invalid value.
        """
        where = self.files
        values = _SEARCH | {k: v for k, v in self.params.items() if v is not None}
        return {
            "search": "opennmt",
            "beam_size": max(whole_number(where, values, "beam_width"), 1),
            "alpha": number(where, values, "length_penalty"),
            "decode_length_factor": 0.0,
            "decode_extra_length": whole_number(
                where, values, "maximum_decoding_length"
            ),
        }

    def unused_search(self) -> list[str]:
        """Returns the search settings in `params` that are not supported."""
        return [
            f"{name}={self.params[name]}"
            for name, disabled in _UNSUPPORTED_SEARCH.items()
            if self.params.get(name) not in disabled
        ]

    def _vocabulary_file(self, side: str) -> Path:
        name = self.data.get(f"{side}_vocabulary")
        if isinstance(name, list | dict):
            raise UserError(
                f"{self.files}: {side}_vocabulary names several files; models with "
                "several inputs are not supported"
            )
        if name is None:
            raise UserError(
                f"{self.files} lacks {side}_vocabulary in the section data; give the "
                "configuration that the model was trained with"
            )
        return self._find(name)

    def _find(self, name: Any) -> Path:
        """Returns the path of a file that the configuration names.

        The directory part of the name may come from the training machine, so the file
        is also searched for in `folders`.
        """
        if not isinstance(name, str) or not name:
            raise UserError(f"{self.files}: {name!r:.40} must be a file name")
        places = [Path(name)]
        for folder in self.folders:
            places += [folder / name, folder / Path(name).name]
        for place in places:
            if place.is_file():
                return place
        raise UserError(
            f"{self.files} names {name}, which does not exist; copy it into the folder "
            "of the configuration"
        )


def read_config(
    files: Sequence[str], folder: Path, auto_marks: bool, auto: bool
) -> Config:
    """Reads and merges configuration files.

    Args:
        files: Names of the files; later ones override earlier ones.
        folder: Folder of the checkpoint, which may contain the vocabularies.
        auto_marks: Whether the model's automatic configuration adds </s> to sources.
        auto: Whether the model was trained with the automatic configuration.

    Raises:
        UserError: A file cannot be read, is not valid YAML, or has invalid sections.
    """
    paths = [Path(name) for name in files]
    config, where = _read(paths), ", ".join(files)
    data, params = _section(where, config, "data"), _section(where, config, "params")
    if auto:
        params = {"beam_width": 4} | params
    controls = {"end": auto and auto_marks}
    if data.get("source_sequence_controls") is not None:
        controls = _section(where, data, "source_sequence_controls")
    folders = (*(path.parent for path in paths), folder, folder / "assets")
    marks = bool(controls.get("start")), bool(controls.get("end"))
    return Config(where, folders, data, params, marks)


def _section(where: str, config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns a section of a configuration, empty if it is missing.

    Raises UserError if it is not a mapping.
    """
    section = config.get(name) or {}
    if not isinstance(section, dict):
        raise UserError(f"{where}: {name} must contain lines of the form 'key: value'")
    return section


def _read(paths: list[Path]) -> dict[str, Any]:
    """Reads YAML files and merges their sections; later files override earlier ones."""
    config: Any = {}
    for path in paths:
        text = read_text(path)
        try:
            _limit_references(path, text)
            sections = yaml.safe_load(text)
        except (ValueError, yaml.YAMLError, RecursionError):
            raise UserError(f"{path} is not valid YAML; correct it") from None
        if not isinstance(sections, dict):
            raise UserError(f"{path}: must contain lines of the form 'key: value'")
        for name, section in sections.items():
            old = config.get(name)
            both_dicts = isinstance(old, dict) and isinstance(section, dict)
            config[name] = old | section if both_dicts else section
    return config


def _limit_references(path: Path, text: str) -> None:
    """Raises UserError if a YAML text has too many references."""
    references = sum(isinstance(each, yaml.AliasEvent) for each in yaml.parse(text))
    if references > _MOST_REFERENCES:
        raise UserError(
            f"{path} has {references:,} references (*) of YAML, but at most "
            f"{_MOST_REFERENCES} are supported; write the values in their place"
        )


def _vocabulary(path: Path) -> Vocabulary:
    """Reads a vocabulary of one piece per line and appends <unk>."""
    text = read_text(path)
    # Do not use splitlines: other Unicode line breaks can be pieces.
    pieces = [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]
    if pieces[:3] != [BLANK, START, END]:
        raise UserError(
            f"{path}: the first three lines must be {BLANK}, {START} and {END}; "
            "convert a SentencePiece vocabulary with onmt-build-vocab"
        )
    # Rename <unk> and <pad> if the file lists them, because they are added with other
    # ids. The new names contain a space, so no text is tokenized as one of them.
    renamed = [f"{p} listed" if p in (UNKNOWN, PADDING) else p for p in pieces]
    if len(set(renamed)) < len(renamed):
        duplicate = next(piece for piece in renamed if renamed.count(piece) > 1)
        raise UserError(
            f"{path} contains the piece {duplicate!r} twice; use the vocabulary that "
            "the model was trained with"
        )
    return Vocabulary(path, (*renamed, UNKNOWN))
