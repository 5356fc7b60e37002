#!/usr/bin/env bash
# Runs all checks (formatter, linter, type checker, tests), from any directory:
#
#     bash tools/test.sh [--slow] [pytest arguments]
#
# --slow adds tests that take minutes. The checks run in a separate environment,
# .venv-test (or $T2T_REPRO_VENV), which the first run creates. Tests that need
# reference data read it from ../shared (or $T2T_REPRO_SHARED) and are skipped if it
# is missing.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

slow=no
pytest_arguments=()
for argument in "$@"; do
    case "$argument" in
        --slow) slow=yes ;;
        --help | -h)
            sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        *) pytest_arguments+=("$argument") ;;
    esac
done

started=$SECONDS
failed=()

# check NAME COMMAND...: runs a command under a heading and records failures.
check() {
    local name="$1" from=$SECONDS
    shift
    heading "$name"
    if "$@"; then
        printf '%s: passed (%d s)\n' "$name" "$((SECONDS - from))"
    else
        printf '%s: FAILED (%d s)\n' "$name" "$((SECONDS - from))"
        failed+=("$name")
    fi
}

# Runs ruff with its options from setup.cfg, which ruff does not read.
ruff() {
    local options=()
    mapfile -t options < <("$ENVIRONMENT_PYTHON" -c '
import configparser, sys
settings = configparser.ConfigParser()
settings.read("setup.cfg", encoding="utf-8")
ruff = settings["tool:ruff"]
sections = ("common", "check") if sys.argv[1] == "check" else ("common",)
print("\n".join(line for key in sections for line in ruff[key].split()))' "$1")
    "$ENVIRONMENT_PYTHON" -m ruff "$@" "${options[@]}" t2t_repro tests tools docs colab
}

# Runs test files in parallel, one per core: most of the time is spent in tracing, which
# uses a single core. Status 5 means that no selected test has the mark.
tests() {
    local status=0
    "$ENVIRONMENT_PYTHON" -m pytest -m "$1" -n "$(nproc)" --dist loadfile \
        ${pytest_arguments[@]+"${pytest_arguments[@]}"} || status=$?
    ((status == 0 || status == 5))
}

heading "Environment"
make_environment "${T2T_REPRO_VENV:-$ROOT/.venv-test}" ".[docs,test]" editable
cd "$ROOT" || exit 2
shared="${T2T_REPRO_SHARED:-$ROOT/../shared}"
if [[ -d "$shared" ]]; then
    echo "Reference data: $shared"
else
    echo "No reference data in $shared: tests that need it are skipped"
fi
export TF_CPP_MIN_LOG_LEVEL=3
# Without caches, each of the many processes would compile the package again.
unset PYTHONDONTWRITEBYTECODE

check "Formatter" ruff format --check
check "Linter" ruff check
check "Types" "$ENVIRONMENT_PYTHON" -m mypy
check "Quick tests" tests "not medium and not slow"
check "Longer tests" tests "medium and not slow"
[[ "$slow" == no ]] || check "Slow tests" tests slow

heading "Summary"
if ((${#failed[@]})); then
    printf 'FAILED after %d s:' "$((SECONDS - started))"
    printf ' [%s]' "${failed[@]}"
    printf '\n'
    exit 1
fi
printf 'All checks passed in %d s.\n' "$((SECONDS - started))"
