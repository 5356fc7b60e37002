# Creates and reuses Python environments; sourced by quickstart.sh and test.sh.
#
# make_environment FOLDER TARGET [editable]
#     FOLDER    directory of the environment; recreated when the requirements change
#     TARGET    argument of pip install, for example ".[test]"
#     editable  link to this source tree instead of copying the package
# Sets $ENVIRONMENT_PYTHON to the interpreter of the environment.
#
# $PYTHON selects the base interpreter (default: the first suitable one of python3,
# python3.13, python3.12 and python3.11).

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
            fail "PYTHON=$PYTHON not found; set PYTHON to a Python 3.11, 3.12 or 3.13."
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
    fail "found no Python 3.11, 3.12 or 3.13; install one or set its path: PYTHON=/path/to/python3 bash $0"
}

# hash_of FILE...: prints a hash of files, given relative to the root.
hash_of() {
    (cd "$ROOT" && cat "$@") | "$BASE_PYTHON" -c '
import hashlib, sys
print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())'
}

# Prints a hash of the requirements in setup.cfg, without the settings of the checks.
requirements_fingerprint() {
    "$BASE_PYTHON" - "$ROOT" <<'PYTHON'
import configparser, hashlib, sys
settings = configparser.ConfigParser()
settings.read(f"{sys.argv[1]}/setup.cfg", encoding="utf-8")
parts = {name: dict(part) for name, part in settings.items() if "option" in name}
print(hashlib.sha256(repr(parts).encode()).hexdigest())
PYTHON
}

# Prints a hash of the package's files.
package_fingerprint() {
    local file files=()
    while IFS= read -r -d '' file; do files+=("$file"); done < <(
        cd "$ROOT" && find t2t_repro configs -type f \
            \( -name '*.py' -o -name '*.yaml' -o -path '*/attention_page/*' \) -print0 | LC_ALL=C sort -z
    )
    hash_of setup.cfg pyproject.toml "${files[@]}"
}

# quiet_pip LOG ARGUMENTS...: runs pip install and shows the log only if it fails.
quiet_pip() {
    local log="$1" started=$SECONDS ticker status=0
    shift
    # Prints the elapsed time; ends if this script is killed, and keeps no pipe open.
    (while sleep 15 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do printf '    ... %d s\n' "$((SECONDS - started))"; done) &
    ticker=$!
    "$ENVIRONMENT_PYTHON" -m pip install --disable-pip-version-check \
        --progress-bar off --no-input "$@" >"$log" 2>&1 || status=$?
    kill "$ticker" 2>/dev/null
    wait "$ticker" 2>/dev/null || true
    if ((status != 0)); then
        tail -n 25 "$log" >&2
        fail "pip could not install the package (complete log: $log)."
    fi
}

make_environment() {
    local folder="$1" target="$2" editable="${3:-}" had_build=no requirements package
    [[ "$folder" == /* ]] || folder="$PWD/$folder"
    BASE_PYTHON="$(find_python)" || exit $?
    requirements="$("$BASE_PYTHON" --version 2>&1) $ROOT $target $(requirements_fingerprint)"
    ENVIRONMENT_PYTHON="$folder/bin/python"
    [[ -e "$ROOT/build" ]] && had_build=yes

    if [[ "$(cat "$folder/installed" 2>/dev/null)" == "$requirements" ]]; then
        echo "Reusing the environment in $folder"
    else
        echo "Creating an environment in $folder with $("$BASE_PYTHON" --version)"
        "$BASE_PYTHON" -m venv --clear "$folder" ||
            fail "$BASE_PYTHON could not create an environment in $folder (on Debian: apt install python3-venv)."
        echo "Installing t2t_repro and its requirements (a few minutes)"
        if [[ "$editable" == editable ]]; then
            quiet_pip "$folder/pip.log" --editable "$ROOT/${target#.}"
        else
            quiet_pip "$folder/pip.log" "$ROOT/${target#.}"
            package_fingerprint >"$folder/package"
        fi
        printf '%s\n' "$requirements" >"$folder/installed"
    fi
    if [[ "$editable" != editable ]]; then
        package="$(package_fingerprint)"
        if [[ "$(cat "$folder/package" 2>/dev/null)" != "$package" ]]; then
            echo "Reinstalling t2t_repro because its files have changed"
            quiet_pip "$folder/pip.log" --no-deps --force-reinstall "$ROOT"
            printf '%s\n' "$package" >"$folder/package"
        fi
    fi
    # setuptools leaves a copy of the package here and would reuse it in later installs.
    [[ "$had_build" == yes ]] || rm -rf "$ROOT/build"
}
