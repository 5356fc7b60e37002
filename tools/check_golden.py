"""Compares t2t_repro with reference data computed by tensor2tensor.

    python tools/check_golden.py --golden_dir FOLDER [--json]

FOLDER holds NumPy, JSON and TensorFlow files, whose contents determine the check. An
array that is neither compared nor used as an input is a failure.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from flags import REQUIRED, parser

from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, checks all files and prints one line per array."""
    flag = ("golden_dir", Path, REQUIRED, "folder of reference data")
    args = parser(__doc__, flag).parse_args(argv)
    if not args.golden_dir.is_dir():
        raise UserError(f"--golden_dir {args.golden_dir}: no such folder")
    cli.start_tensorflow(args.verbose)
    import tensorflow as tf
    from golden_checks.folder import check_files

    # By default, NVIDIA GPUs since Ampere round the inputs of float32 matmuls to TF32.
    tf.config.experimental.enable_tensor_float_32_execution(False)

    findings = []
    for sheet in check_files(args.golden_dir):
        findings += sheet.findings()
        if not args.json:
            print("\n".join(finding.line() for finding in sheet.findings()), flush=True)
    if not findings:
        raise UserError(f"--golden_dir {args.golden_dir}: no reference data found")
    failed = [finding for finding in findings if not finding.passed]
    compared = sum(finding.difference is not None for finding in findings)
    inputs = sum(finding.difference is None and finding.used for finding in findings)
    text = (
        f"{len(findings):,} arrays: {compared:,} compared, {inputs:,} inputs, "
        f"{len(failed):,} failed"
    )
    arrays = [asdict(finding) | {"passed": finding.passed} for finding in findings]
    values = {"passed": not failed, "failed": len(failed), "arrays": arrays}
    cli.print_result(text, values, args.json)
    if failed:
        names = ", ".join(f"{finding.file} {finding.array}" for finding in failed[:3])
        raise UserError(
            f"{len(failed)} arrays differ or were not used; the first: {names}"
        )


if __name__ == "__main__":
    cli.run(main)
