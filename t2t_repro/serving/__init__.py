"""Export of models for TensorFlow Serving and LiteRT, and clients.

`signatures` and `id_signatures` define the exported functions and `saved_model` writes
them. `warmup` and `model_card` write additional files of a version, `server_files` the
configuration of the server. `client` sends requests to a server through `transport`.
`litert` writes a LiteRT model, with which `litert_client` translates. `exports`
contains the formats of the command `export`.
"""
