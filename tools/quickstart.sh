#!/usr/bin/env bash
# From a fresh checkout to translated sentences, from any directory:
#
#     bash tools/quickstart.sh
#
# Makes an environment (.venv), installs the package, trains the `tiny` set on the
# built-in corpus, averages and scores it, exports it, and translates sentences with
# the export. Everything lies in quickstart/ afterwards; the figures are in
# quickstart_report.json. It downloads nothing but packages. A second run reuses what
# is there; remove quickstart/ to train anew. Ten minutes at most on two cores.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

case "${1:-}" in
    "") ;;
    --help | -h)
        sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
        exit 0
        ;;
    *) fail "unknown argument $1; quickstart takes none." ;;
esac

work="$ROOT/quickstart"
report="$ROOT/quickstart_report.json"
reused=()

heading "1/4 Environment"
make_environment "$ROOT/.venv" "."
mkdir -p "$work"
# In this folder `python -m t2t_repro` finds the installed package, not the checkout.
cd "$work"

heading "2/4 Train, average and score"
package="$(package_fingerprint)"
if [[ -e package && "$(cat package)" != "$package" ]]; then
    echo "The package has changed since quickstart/ was made: training anew"
    rm -rf model data export result.json seconds
fi
printf '%s\n' "$package" >package
if [[ -e result.json && -e seconds ]]; then
    echo "Reusing the trained model in quickstart/model and its score"
    reused+=(--reused model)
else
    from=$SECONDS
    rm -f "$report"
    # The result appears under its name only when the training has succeeded.
    "$ENVIRONMENT_PYTHON" -m t2t_repro.train --hparams tiny --problem translate_ende_numbers \
        --model_dir model --data_dir data --json >result.part
    mv result.part result.json
    printf '%s\n' "$((SECONDS - from))" >seconds
fi

heading "3/4 Export"
if [[ -e export && export -nt result.json ]]; then
    echo "Reusing the SavedModel in quickstart/export"
    reused+=(--reused export)
else
    rm -rf export export.part
    "$ENVIRONMENT_PYTHON" -m t2t_repro.export --model_dir model --export_dir export.part
    mv export.part export
    touch export
fi

heading "4/4 Translate with the export"
if ! "$ENVIRONMENT_PYTHON" "$ROOT/tools/quickstart_report.py" --export_dir export \
    --result result.json --train_seconds "$(cat seconds)" --seconds "$SECONDS" \
    --report "$report" ${reused[@]+"${reused[@]}"} 2>translate.log; then
    cat translate.log >&2
    fail "the export could not translate."
fi
