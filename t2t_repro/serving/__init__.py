"""The model behind TensorFlow Serving: what it loads, and who asks it.

`signatures` is what is exported, `saved_model` writes it, `warmup`, `model_card` and
`server_files` what lies in and beside it; `client` asks a server, through `transport`.
"""
