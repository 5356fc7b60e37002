"""SavedModel for TensorFlow Serving, which translates text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from t2t_repro.hparams.supported import Supported
from t2t_repro.serving import server_files
from t2t_repro.serving.exports.export_format import ExportFormat, ExportOptions

if TYPE_CHECKING:
    from t2t_repro.translation.loading import Loaded

SUPPORTED = Supported(
    "a SavedModel",
    "use python -m t2t_repro.translate",
    (
        *("tokenizer", "vocab_size", "share_vocab", "vocab_divisor"),
        *("share_embeddings", "tie_target"),
        *("d_model", "d_ff", "decoder_d_ff", "num_layers", "num_decoder_layers"),
        *("num_heads", "d_k", "d_v", "activation", "attention_bias", "softmax_bias"),
        *("norm", "norm_epsilon", "max_relative_position", "self_attention_radius"),
        *("position", "max_position", "start_symbol", "source_end"),
        *("scale_embeddings", "target_space_embedding", "target_space_id"),
        *("search", "beam_size", "alpha", "word_penalty", "allow_unknown"),
        *("decode_extra_length", "decode_length_factor"),
    ),
)

_OF_IDS = (
    "The signatures take and return ids of the vocabulary; `tokenizer/` converts text "
    "to ids and back without TensorFlow. "
)
_UNCUT = (
    ", except by the signature `split_sentences`, which divides texts into sentences"
)


class SavedModel(ExportFormat):
    """SavedModel from text to text, with a fixed beam size and alpha."""

    name = "saved_model"
    file = "saved_model.pb"
    precisions = ("float32", "bfloat16", "int8")
    flags: ClassVar[tuple[str, ...]] = (
        *("beam_size", "alpha", "max_input_length", "calibration_file"),
        *("int8_weights", "with_terms", "model_name", "licence"),
    )
    converts = False
    supports_ensembles = True
    supported = SUPPORTED

    def check_folder(self, export_dir: Path, model_name: str) -> None:
        """Also rejects invalid names, and the server's files of another model."""
        super().check_folder(export_dir, model_name)
        server_files.check_model_name(model_name)
        server_files.existing_files(export_dir, model_name)

    def write(self, loaded: Loaded, folder: Path, options: ExportOptions) -> None:
        """Writes the signatures, the model card and the warm-up requests."""
        from t2t_repro.serving.model_card import model_card
        from t2t_repro.serving.saved_model import write_saved_model
        from t2t_repro.serving.signatures import ServingModule
        from t2t_repro.translation.translator import MAX_INPUT_LENGTH

        longest = options.max_input_length or MAX_INPUT_LENGTH
        search = loaded.search(beam_size=options.beam_size, alpha=options.alpha)
        module = ServingModule(
            loaded.models,
            loaded.tokenizer,
            search,
            longest,
            options.with_terms,
            self.takes_ids,
            loaded.model_dirs[0].provenance().source_lang,
        )
        use = _OF_IDS if self.takes_ids else ""
        card = model_card(loaded, search, options, longest, use, _UNCUT)
        tokenizer = loaded.tokenizer if self.takes_ids else None
        write_saved_model(module, folder, options.model_name, card, tokenizer)

    def export(
        self, loaded: Loaded, export_dir: Path, options: ExportOptions
    ) -> dict[str, Any]:
        """Writes the next version and the server's files; see `ExportFormat.export`.

        Returns:
            Also ``model_name``, the name of the model on the server, and
            ``kept_files``, the names of existing files of the server.
        """
        result = super().export(loaded, export_dir, options)
        existing = server_files.write_server_files(export_dir, options.model_name)
        needs_padding = options.with_terms or self.takes_ids
        if needs_padding and not server_files.pads_inputs(export_dir):
            what = "numbers of ids" if self.takes_ids else "numbers of strings of terms"
            print(
                f"{export_dir / server_files.BATCHING} is kept, but this export needs "
                "pad_variable_length_inputs: true there; without it, concurrent "
                f"requests with different {what} fail",
                file=sys.stderr,
                flush=True,
            )
        return result | {"model_name": options.model_name, "kept_files": existing}


SAVED_MODEL = SavedModel()
