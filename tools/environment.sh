# Sourced by quickstart.sh and test.sh: a Python environment in a folder, made once.
#
# make_environment FOLDER TARGET [editable]
#     FOLDER    where the environment lies; made anew when what it needs has changed
#     TARGET    what pip installs, for example ".[test]"
#     editable  install the package as a link to this tree instead of a copy
# afterwards $ENVIRONMENT_PYTHON is its interpreter.
#
# $PYTHON chooses the interpreter to build on; without it python3, then python3.13,
# python3.12 and python3.11 are tried.

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

heading() {
    printf '\n=== %s\n' "$*"
}

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 2
}

suitable() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' \
        2>/dev/null
}

find_python() {
    local candidate
    if [[ -n "${PYTHON:-}" ]]; then
        command -v "$PYTHON" >/dev/null ||
            fail "PYTHON=$PYTHON is not a program; name a Python 3.11, 3.12 or 3.13."
        suitable "$PYTHON" ||
            fail "PYTHON=$PYTHON is $("$PYTHON" --version 2>&1); Python 3.11, 3.12 or 3.13 is needed."
        printf '%s\n' "$PYTHON"
        return
    fi
    for candidate in python3 python3.13 python3.12 python3.11; do
        if suitable "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    fail "found no Python 3.11, 3.12 or 3.13; install one or name it: PYTHON=/path/to/python3 bash $0"
}

# hash_of FILE...: one fingerprint of files, named from the root.
hash_of() {
    (cd "$ROOT" && cat "$@") | "$BASE_PYTHON" -c '
import hashlib, sys
print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())'
}

# The fingerprint of what setup.cfg installs; its settings of the checks are no part.
requirements_fingerprint() {
    "$BASE_PYTHON" - "$ROOT" <<'PYTHON'
import configparser, hashlib, sys
settings = configparser.ConfigParser()
settings.read(f"{sys.argv[1]}/setup.cfg", encoding="utf-8")
parts = {name: dict(part) for name, part in settings.items() if "option" in name}
print(hashlib.sha256(repr(parts).encode()).hexdigest())
PYTHON
}

# The fingerprint of the package's own files.
package_fingerprint() {
    local file files=()
    while IFS= read -r -d '' file; do files+=("$file"); done < <(
        cd "$ROOT" && find t2t_repro configs -type f \
            \( -name '*.py' -o -name '*.yaml' -o -path '*/attention_page/*' \) -print0 | LC_ALL=C sort -z
    )
    hash_of setup.cfg pyproject.toml "${files[@]}"
}

# pip with its output in a log, which is shown only if it fails.
quiet_pip() {
    local log="$1" started=$SECONDS ticker status=0
    shift
    # It ends by itself if this script is killed, and holds no pipe open.
    (while sleep 15 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do printf '    ... %d s\n' "$((SECONDS - started))"; done) &
    ticker=$!
    "$ENVIRONMENT_PYTHON" -m pip install --disable-pip-version-check \
        --progress-bar off --no-input "$@" >"$log" 2>&1 || status=$?
    kill "$ticker" 2>/dev/null
    wait "$ticker" 2>/dev/null || true
    if ((status != 0)); then
        tail -n 25 "$log" >&2
        fail "pip could not install (the whole log: $log)."
    fi
}

make_environment() {
    local folder="$1" target="$2" editable="${3:-}" built=no wanted package
    [[ "$folder" == /* ]] || folder="$PWD/$folder"
    BASE_PYTHON="$(find_python)" || exit $?
    wanted="$("$BASE_PYTHON" --version 2>&1) $ROOT $target $(requirements_fingerprint)"
    ENVIRONMENT_PYTHON="$folder/bin/python"
    [[ -e "$ROOT/build" ]] && built=yes

    if [[ "$(cat "$folder/installed" 2>/dev/null)" == "$wanted" ]]; then
        echo "Reusing the environment in $folder"
    else
        echo "Making an environment in $folder with $("$BASE_PYTHON" --version)"
        "$BASE_PYTHON" -m venv --clear "$folder" ||
            fail "$BASE_PYTHON could not make an environment in $folder (on Debian: apt install python3-venv)."
        echo "Installing t2t_repro with TensorFlow, Keras and the rest: some minutes at most"
        if [[ "$editable" == editable ]]; then
            quiet_pip "$folder/pip.log" --editable "$ROOT/${target#.}"
        else
            quiet_pip "$folder/pip.log" "$ROOT/${target#.}"
            package_fingerprint >"$folder/package"
        fi
        printf '%s\n' "$wanted" >"$folder/installed"
    fi
    if [[ "$editable" != editable ]]; then
        package="$(package_fingerprint)"
        if [[ "$(cat "$folder/package" 2>/dev/null)" != "$package" ]]; then
            echo "Installing t2t_repro again, for its files have changed"
            quiet_pip "$folder/pip.log" --no-deps --force-reinstall "$ROOT"
            printf '%s\n' "$package" >"$folder/package"
        fi
    fi
    # setuptools leaves a copy of the package here and would install from it again.
    [[ "$built" == yes ]] || rm -rf "$ROOT/build"
}
