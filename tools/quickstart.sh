#!/usr/bin/env bash
# Trains a small model and translates sentences with it, from any directory:
#
#     bash tools/quickstart.sh
#
# Creates an environment (.venv), installs the package, trains the `tiny` set on the
# built-in corpus, averages checkpoints, scores and exports the model, and translates
# sentences with the export. Downloads only packages. Writes the model to quickstart/
# and the results to quickstart_report.json. A second run reuses existing results;
# remove quickstart/ to train again. Takes at most ten minutes on two cores.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

case "${1:-}" in
    "") ;;
    --help | -h)
        sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
        exit 0
        ;;
    *) fail "unknown argument $1; quickstart.sh takes no arguments." ;;
esac

work="$ROOT/quickstart"
report="$ROOT/quickstart_report.json"
reused=()

heading "1/4 Environment"
make_environment "$ROOT/.venv" "."
mkdir -p "$work"
# In this directory, `python -m t2t_repro` imports the installed package, not the checkout.
cd "$work"

heading "2/4 Train, average and score"
package="$(package_fingerprint)"
if [[ -e package && "$(cat package)" != "$package" ]]; then
    echo "The package has changed since the last run: training again"
    rm -rf model data export result.json seconds
fi
printf '%s\n' "$package" >package
if [[ -e result.json && -e seconds ]]; then
    echo "Reusing the trained model in quickstart/model and its score"
    reused+=(--reused model)
else
    from=$SECONDS
    rm -f "$report"
    # Renames the result only after training has succeeded.
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
    fail "translating with the export failed; see the messages above."
fi
