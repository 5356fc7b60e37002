"""SavedModel that translates ids, which any TensorFlow runtime supports."""

from t2t_repro.serving.exports.saved_model import SavedModel


class Ids(SavedModel):
    """SavedModel from ids to ids, with a tokenizer for clients (--input ids)."""

    flags = tuple(name for name in SavedModel.flags if name != "with_terms")
    takes_ids = True


IDS = Ids()
