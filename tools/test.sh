#!/usr/bin/env bash
# Every check: formatter, linter, types, tests. From any directory:
#
#     bash tools/test.sh [--slow] [pytest arguments]
#
# --slow adds the tests that train or measure for minutes. The checks run in an
# environment of their own, .venv-test (or $T2T_REPRO_VENV), made at the first run.
# Reference data is looked for in ../shared (or $T2T_REPRO_SHARED); the tests that
# need it are skipped where it is absent.
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

# check NAME COMMAND...: runs it under a heading and remembers whether it failed.
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

# Ruff reads no setup.cfg, so its options are read from there for it.
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

# Files of tests run side by side, one on every core: most of the time goes into
# tracing, which uses one. Status 5 says that no test has the mark (among those asked
# for).
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
    echo "No reference data in $shared: the tests that need it are skipped"
fi
export TF_CPP_MIN_LOG_LEVEL=3

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
