"""Times programs that `compile_for_gpu.py --keep` wrote, on a GPU.

    time_hlo.py PROGRAM... [--steps 20] [--cpu]

It requires JAX with its CUDA plugin, and neither TensorFlow nor t2t_repro. Each program
is compiled with the flags in $XLA_FLAGS and runs with random weights, and with ids that
form sentences of 30 tokens. The script prints the time of the compilation, the median
time of a step over five blocks of steps, the results that are numbers (the loss and the
number of tokens), and the norm of all gradients. --cpu runs the programs on the CPU
instead, to compare these results.
"""

import argparse
import re
import statistics
import time
from pathlib import Path


def main():
    """Parses the flags, then compiles and runs one program after the other."""
    import jax
    import numpy as np
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib.mlir import ir

    parser = argparse.ArgumentParser(description="Times compiled training steps.")
    parser.add_argument("programs", nargs="+", type=Path)
    parser.add_argument("--steps", type=int, default=20, help="steps per block")
    parser.add_argument("--cpu", action="store_true", help="run on the CPU")
    args = parser.parse_args()
    device = jax.devices("cpu" if args.cpu else "gpu")[0]
    options = compiler.get_compile_options(1, 1)

    def argument(kind, generator):
        *shape, dtype = re.match(r"tensor<(.*)>", kind)[1].split("x")
        shape = [int(size) for size in shape]
        if dtype == "f32":
            return generator.normal(0, 0.02, shape).astype(np.float32)
        ids = generator.integers(2, 1000, shape, np.int32)
        ids[:, 29::30] = 1  # EOS.
        return ids

    def run(executable, inputs, count):
        began = time.perf_counter()
        for _ in range(count):
            results = executable.execute(inputs)
        for result in results:
            result.block_until_ready()
        return results, (time.perf_counter() - began) / count

    for path in args.programs:
        with mlir.make_ir_context():
            text = xla_client._xla.mlir.hlo_to_stablehlo(path.read_bytes())
            module = ir.Module.parse(text)
            main = next(
                each
                for each in module.body.operations
                if each.attributes["sym_name"].value == "main"
            )
            kinds = [str(kind) for kind in main.type.inputs]
            began = time.perf_counter()
            executable = device.client.compile_and_load(
                module, xla_client._xla.DeviceList((device,)), options
            )
            compilation = time.perf_counter() - began
        generator = np.random.default_rng(1)
        inputs = [jax.device_put(argument(kind, generator), device) for kind in kinds]
        results, _ = run(executable, inputs, 1)
        values = [np.asarray(each, np.float64) for each in results]
        gradients = [each for each in values if each.ndim]
        blocks = [run(executable, inputs, args.steps)[1] * 1e3 for _ in range(5)]
        print(
            f"{path.name} on {device.device_kind}: compiled in {compilation:.1f} s, "
            f"{statistics.median(blocks):.2f} ms "
            f"({min(blocks):.2f} to {max(blocks):.2f}); "
            f"numbers {', '.join(f'{each:.6g}' for each in values if not each.ndim)}; "
            f"gradient norm {sum((each**2).sum() for each in gradients) ** 0.5:.6g}",
            flush=True,
        )


if __name__ == "__main__":
    main()
