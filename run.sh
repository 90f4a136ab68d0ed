#!/usr/bin/env bash
# Runs the commands of the course: finds Python and, once, makes the environment in .venv.
# `./run.sh help` lists the commands. Works with bash 3.2, the one that comes with macOS.
set -u

CALLED_FROM=$PWD
ROOT=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")") # also when called through a symlink
VENV=.venv
OWN_PYTHON=$ROOT/$VENV/bin/python
STAMP=$VENV/course-stamp # the checkout, requirements and COURSE_TORCH for which .venv is complete
JUPYTER=tools/jupyter # what JupyterLab is told about the course
TESTS=requirements-tests.txt
UNPACKED=$VENV/tmp       # pip unpacks beside .venv, whose disk was checked: /tmp may be small

say() { printf '%s\n' "$*" >&2; }

die() { # die STATUS WORD...
    say "run.sh: ${*:2}"
    exit "$1"
}

# --- Which Python: each of these sets PYTHON --------------------------------------------------

is_new_enough() { "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

has() { # has MODULE...: are they installed for PYTHON? Looks for them without importing them
    (cd / && "$PYTHON" -P -c 'import sys; from importlib.util import find_spec
sys.exit(not all(map(find_spec, sys.argv[1:])))' "$@" 2>/dev/null)
}

need() { # need MODULE [PACKAGES]: the user's own Python may lack it
    has "$1" || die 2 "$PYTHON has no $1: install it there ($PYTHON -m pip install ${2:-$1})."
}

prefer_checkout() { export PYTHONPATH="$ROOT${PYTHONPATH:+:$PYTHONPATH}"; }

chosen_python() { # the one that COURSE_PYTHON names; false if it is not set
    [ -n "${COURSE_PYTHON:-}" ] || return
    case $COURSE_PYTHON in
        /*) PYTHON=$COURSE_PYTHON ;;
        */*) PYTHON=$CALLED_FROM/$COURSE_PYTHON ;;
        *) PYTHON=$(command -v "$COURSE_PYTHON") ;;
    esac
    is_new_enough || die 2 "COURSE_PYTHON=$COURSE_PYTHON is not a working Python 3.11 or newer" \
        "($("$PYTHON" --version 2>&1)): name one that is, or unset it."
    prefer_checkout # the course need not be installed there
}

active_python() { # of an active environment that holds the course; false if there is none
    local folder
    for folder in "${VIRTUAL_ENV:-}" "${CONDA_PREFIX:-}"; do
        PYTHON=$folder/bin/python
        # Our own .venv is not taken here: only its stamp says whether it is complete.
        [ -n "$folder" ] && ! [ "$folder" -ef "$VENV" ] && [ -x "$PYTHON" ] &&
            has torch course_utils && prefer_checkout && return # not another checkout's course
    done
    return 1
}

python_on_path() { # plain python3 comes first: it is the one that the user knows
    local name
    for name in python3 python3.14 python3.13 python3.12 python3.11 python; do
        PYTHON=$(command -v "$name") && is_new_enough && return
    done
    die 2 "the course needs Python 3.11 or newer, and there is none on PATH" \
        "($(python3 --version 2>&1)): install one, or name it in COURSE_PYTHON."
}

own_python() { PYTHON=$OWN_PYTHON && is_new_enough; } # false as long as there is no .venv

any_python() { # for commands that need no torch: nothing is installed for them
    chosen_python || active_python || own_python || python_on_path
}

course_python() { # course_python [WORD...]: for a call that needs torch; makes .venv if needed
    chosen_python || active_python || {
        is_complete || set_up "$@"
        PYTHON=$OWN_PYTHON
    }
    need torch "torch torchvision"
}

# --- The environment of our own, .venv ----------------------------------------------------------

stamp() { echo "$ROOT" && cat requirements.txt pyproject.toml | cksum && torch_asked_for; }

torch_asked_for() { echo "${COURSE_TORCH:-$(torch_stamped)}"; } # cpu, cuda, or nothing

torch_stamped() { [ ! -e "$STAMP" ] || awk 'NR == 3' "$STAMP"; }

is_complete() { [ -x "$OWN_PYTHON" ] && [ "$(cat "$STAMP" 2>/dev/null)" = "$(stamp)" ]; }

set_up() { # set_up [WORD...]: a mistake in the call is reported before anything is installed
    [ $# -eq 0 ] || { any_python && "$PYTHON" -m tools --check "$@"; } || exit
    [ -w . ] || die 2 "cannot write in $ROOT, so no environment can be made there: copy the" \
        "course to a folder of yours, or name a Python that has torch in COURSE_PYTHON."
    lock
    is_complete || alone install # another run.sh may have finished it while this one waited
    exec 9>&-
}

add_tests() { # what only tests need; another Python than our own is left as it is
    [ "$PYTHON" = "$OWN_PYTHON" ] && ! has_tests || return 0
    lock
    has_tests || alone install_tests
    exec 9>&-
}

has_tests() { [ ! -e $TESTS ] || [ "$(cat "$VENV/$TESTS" 2>/dev/null)" = "$(cat $TESTS)" ]; }

lock() { # held as long as a process has descriptor 9 open: a killed one leaves no lock behind
    exec 9<>requirements.txt
    any_python && "$PYTHON" -c 'import fcntl, sys
try:
    fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("Waiting for the run.sh that is making .venv...", file=sys.stderr)
    fcntl.flock(9, fcntl.LOCK_EX)
except OSError:  # a network disk without locks
    pass'
}

alone() { # alone FUNCTION: if anything interrupts it, the next call continues
    CHILD=''
    trap 'rm -rf "$UNPACKED"' EXIT
    trap 'interrupted 129' HUP
    trap 'interrupted 130' INT
    trap 'interrupted 143' TERM
    "$1"
    rm -rf "$UNPACKED"
    trap - EXIT HUP INT TERM
}

install() {
    local asked cpu=''
    asked=$(torch_asked_for)
    if ! was_moved && [ "$asked" = "$(torch_stamped)" ] && own_python && has pip; then
        say "Updating $VENV to requirements.txt..."
        printf '%s\n' "$ROOT" incomplete "$asked" >"$STAMP"
        ! has_cpu_torch || cpu=yes
    else
        ! wants_cpu_torch "$asked" || cpu=yes
        make_venv "$cpu"
    fi
    read_settings
    get_uv
    if [ "$cpu" ] && install_cpu_torch; then
        # What is left of the list: torch is there, and its build for CPUs needs none of these.
        awk '!/^(nvidia|cuda)-|^triton==/' requirements.txt >"$UNPACKED/requirements.txt"
        packages -r "$UNPACKED/requirements.txt"
    else
        packages -r requirements.txt
    fi
    packages --no-deps --no-build-isolation -e . # setuptools is there: needs no network
    COURSE_TORCH=$asked stamp >"$STAMP" || exit
    say "$VENV is ready."
}

install_tests() {
    say "Adding what the tests need to $VENV..."
    read_settings
    get_uv
    packages -r $TESTS
    cp $TESTS "$VENV/$TESTS" || exit
}

was_moved() { [ -e "$STAMP" ] && [ "$(head -n 1 "$STAMP")" != "$ROOT" ]; }

make_venv() { # make_venv [yes]: yes for torch's build for CPUs
    [ ! -e "$VENV" ] || say "Removing $VENV: it is incomplete, or was made in another folder," \
        "or for another COURSE_TORCH."
    trap 'rm -rf "$VENV"' EXIT # nothing half-made stays
    rm -rf "$VENV"
    python_on_path # only now: before, it could have found the one in .venv
    need_room "$(size "$1")"
    say "Making $VENV with $PYTHON: about $(size "$1") GB and a few minutes, once..."
    run "$PYTHON" -m venv "$VENV" ||
        die 1 "$PYTHON cannot make $VENV: on Debian and Ubuntu, install the package python3-venv."
    PYTHON=$OWN_PYTHON
}

size() { # size [yes]: GB of the whole environment; torch for macOS has no CUDA libraries either
    if [ "$1" ] || [ "$(uname)" = Darwin ]; then echo 2; else echo 6; fi
}

need_room() { # need_room GB: for what is installed, and for the wheels from which it is unpacked
    local free
    free=$(df -Pk . | awk 'END { print int($4 / 1048576) }')
    [ "$free" -ge $(($1 * 3 / 2)) ] ||
        die 1 "the setup needs $(($1 * 3 / 2)) GB, but the disk of $ROOT has only $free GB free."
}

# --- Torch's build for CPUs: a quarter of the size, where nothing uses CUDA ---------------------

wants_cpu_torch() { # wants_cpu_torch [ASKED]: unasked, where there is no NVIDIA driver
    [ "$(uname)" != Darwin ] || return # there, the usual build is one for CPUs
    [ "$1" = cpu ] || { [ -z "$1" ] && ! has_nvidia_driver; }
}

has_nvidia_driver() { command -v nvidia-smi >/dev/null || [ -e /proc/driver/nvidia ]; }

has_cpu_torch() { compgen -G "$VENV/lib/python*/site-packages/torch-*+cpu.dist-info" >/dev/null; }

install_cpu_torch() { # uv knows where it is; false, and a sentence, if it cannot be had
    # One call for both: a CPU torch beside a CUDA torchvision fails. The rest is installed later.
    # shellcheck disable=SC2046 # two words
    if [ "$UV" ] && run impatiently uv_install --no-deps --torch-backend cpu \
        $(awk '/^torch(vision)?==/' requirements.txt); then
        ! has_cpu_torch || return 0 # the settings may have led it to the usual one
    fi
    say "Torch's build for CPUs cannot be had here ($([ "$UV" ] && echo "uv does not reach it" ||
        echo "pip does not get uv")): installing the usual one, about 6 GB in all."
    need_room 6
    return 1
}

# --- Packages: uv installs them, and where it cannot, pip does ----------------------------------

packages() { # packages ARGUMENT...: the same arguments for both
    if [ "$UV" ]; then
        run quietly uv_install "$@" && return
        say "uv cannot install this ($(reason)): pip does it, which takes some minutes longer."
        UV=''
    fi
    run pip_install --progress-bar off "$@" && return
    [ -z "$HEEDED" ] || say "pip used these settings of yours (pip config list):${HEEDED%,}."
    die 1 "pip could not install the course: fix what it reports above, then try again."
}

get_uv() { # sets UV to its path, or to nothing
    UV=$VENV/bin/uv
    [ -x "$UV" ] || run quietly pip_install --retries 0 --only-binary :all: uv==0.13.9
    [ -x "$UV" ] || UV=''
}

# These are run in a shell of their own.

uv_install() { as_set "$UV" pip install -q --python "$PYTHON" "${FOR_UV[@]}" "$@"; }

pip_install() { as_set "$PYTHON" -m pip install -q --disable-pip-version-check "$@"; }

as_set() { # as_set COMMAND...: with those settings of pip that are heeded, and no others
    [ ! "$KNOWN" ] || { unset PYTHONPATH "${!PIP_@}" && export PIP_CONFIG_FILE=/dev/null; }
    export TMPDIR="$ROOT/$UNPACKED" "${SETTINGS[@]}"
    exec "$@"
}

quietly() { # what the command says is for reason
    exec 2>"$UNPACKED/said"
    "$@" >&2
}

impatiently() { # a network that swallows packets costs 10 seconds
    SETTINGS+=(UV_HTTP_TIMEOUT=10 UV_HTTP_RETRIES=0)
    quietly "$@"
}

reason() { # the first line that uv said
    awk 'NF && !/^warning/ { sub(/^ *(× )?(error: )?/, ""); print substr($0, 1, 200); exit }' \
        "$UNPACKED/said"
}

read_settings() { # sets, from pip's settings, KNOWN SETTINGS FOR_UV HEEDED
    local kind word listed ignored=''
    mkdir -p "$UNPACKED"
    KNOWN='' HEEDED='' SETTINGS=(UV_INDEX_STRATEGY=unsafe-best-match) FOR_UV=(--no-progress)
    # If pip cannot list them, its installation says why.
    listed=$(unset PIP_PYTHON && PIP_QUIET=0 PIP_VERBOSE=0 \
        "$PYTHON" -m pip config list 2>/dev/null) || return
    KNOWN=yes
    while read -r kind word; do
        case $kind in
            set) SETTINGS+=("$word") ;;
            uv) FOR_UV+=("$word") ;;
            heeded) HEEDED="$HEEDED $word," ;;
            ignored) ignored="$ignored $word," ;;
        esac
    done < <("$PYTHON" -c "$SORT_SETTINGS" <<<"$listed")
    [ -z "$ignored" ] || say "These settings of pip (pip config list) are ignored here, because" \
        "$VENV gets exactly what requirements.txt lists:${ignored%,}."
}

# Of pip's settings, those say where packages come from; uv has its own words for them. What else
# there is, such as user, target or dry-run, would let pip install something else, or elsewhere.
# shellcheck disable=SC2016
SORT_SETTINGS='
import re, sys
from ast import literal_eval
ALIASES = {"default-timeout": "timeout", "pypi-url": "index-url"}
FLAGS = {  # of uv, one for each value
    "extra-index-url": "--extra-index-url", "find-links": "--find-links",
    "index-url": "--index-url", "only-binary": "--only-binary",
    "trusted-host": "--allow-insecure-host",
}
SWITCHES = {"no-cache-dir": "--no-cache", "no-index": "--no-index"}
VARIABLES = {  # that uv reads
    "cache-dir": ["UV_CACHE_DIR"], "cert": ["SSL_CERT_FILE"], "client-cert": ["SSL_CLIENT_CERT"],
    "proxy": ["HTTP_PROXY", "HTTPS_PROXY"], "retries": ["UV_HTTP_RETRIES"],
    "timeout": ["UV_HTTP_TIMEOUT"],
}
FOR_PIP_ALONE = {
    "disable-pip-version-check", "keyring-provider", "no-color", "no-input", "progress-bar",
    "no-python-version-warning", "quiet", "require-virtualenv", "root-user-action", "verbose",
}
PLACES = ["global", "install", ":env:"]  # a later one wins
found = {}
matches = (re.match(r"(global|install|:env:)\.([\w-]+)=(.+)", line) for line in sys.stdin)
lines = [match.groups() for match in matches if match]
for _, name, value in sorted(lines, key=lambda line: PLACES.index(line[0])):
    value = " ".join(str(literal_eval(value)).split())
    if value and name != "config-file":  # an empty one changes nothing; the file has been read
        found[ALIASES.get(name, name)] = value
for name, value in found.items():
    off = value.lower() in ("0", "false", "no", "off", "n", "f")
    if name not in {*FLAGS, *SWITCHES, *VARIABLES, *FOR_PIP_ALONE}:
        print("" if off else f"ignored {name}")
        continue
    print("set", "PIP_" + name.upper().replace("-", "_") + "=" + value)
    if name in FLAGS:
        print(*(f"uv {FLAGS[name]}={word}" for word in value.split()), sep="\n")
    elif name in SWITCHES and not off:
        print("uv", SWITCHES[name])
    for variable in VARIABLES.get(name, ()):
        print("set", f"{variable}={value}" + "/uv" * (name == "cache-dir"))
    if name not in FOR_PIP_ALONE:
        print("heeded", name)
'

run() { # run COMMAND...: in its own process group, so that an interrupt can end all of it
    set -m
    "$@" >&2 </dev/null &
    CHILD=$!
    set +m
    wait "$CHILD"
}

interrupted() { # interrupted STATUS
    trap '' HUP INT TERM
    [ -z "$CHILD" ] || { kill -KILL -- "-$CHILD" && wait "$CHILD"; } 2>/dev/null
    sleep 0.1 # the processes that the child started end a moment later
    die "$1" "the setup was interrupted: run the same command again to continue."
}

# --- The commands -------------------------------------------------------------------------------

cd "$ROOT" || exit
unset PYTHONOPTIMIZE # with it, Python leaves out every assert: what fails would pass
[ $# -gt 0 ] || set -- demo transformer
case ${COURSE_TORCH:-} in
    '' | cpu | cuda) ;;
    *) die 2 "COURSE_TORCH=$COURSE_TORCH is neither cpu nor cuda: set it to one, or unset it." ;;
esac
case $* in help | 'help '* | 'demo --help' | 'demo -h') set -- --help ;; esac
case $1 in
    lab)
        [ "$(id -u)" != 0 ] || [[ $* == *allow*root* ]] ||
            die 2 "JupyterLab refuses to run as root: if you must, use ./run.sh lab --allow-root."
        course_python && need jupyterlab
        case $* in
            *--notebook-dir* | *root_dir*) ;; # another folder, such as the course's own notebooks
            *)
                MY=$("$PYTHON" -m tools lab) || exit # makes the student's copies
                set -- "$@" --notebook-dir="$MY"
                # Jupyter writes into a home, and some users of containers have none.
                [ -z "${HOME:-}" ] || [ -w "$HOME" ] || export HOME="${MY%/*}"
                ;;
        esac
        # Kernels with the magics, also after a restart; and the first notebook open, not a launcher.
        export JUPYTER_PATH="$ROOT/$JUPYTER${JUPYTER_PATH:+:$JUPYTER_PATH}"
        export JUPYTER_CONFIG_PATH="$ROOT/$JUPYTER${JUPYTER_CONFIG_PATH:+:$JUPYTER_CONFIG_PATH}"
        exec "$PYTHON" -m jupyterlab --ServerApp.ip=127.0.0.1 "${@:2}"
        ;;
    test)
        course_python && add_tests && need pytest && need xdist "-r $ROOT/$TESTS"
        [ $# -gt 1 ] || exec "$PYTHON" -m tests
        [ "${CI:-}" != true ] || "$PYTHON" -m tests.ci || exit # installs what only tests need
        exec "$PYTHON" -m pytest "${@:2}"
        ;;
    execute)
        course_python && need nbclient && need ipykernel
        prefer_checkout # `tools` is not installed
        cd "$CALLED_FROM" && exec "$PYTHON" -P -m tools "$@" # its paths start there
        ;;
    grade)
        course_python "$@" && need psutil
        prefer_checkout
        cd "$CALLED_FROM" && exec "$PYTHON" -P -m tools "$@" # its paths start there
        ;;
    site)
        any_python && need sphinx "-r $ROOT/requirements-site.txt"
        exec "$PYTHON" -m website "${@:2}"
        ;;
    bench) course_python "$@" && need psutil ;;
    demo) # its first sentence should come at once: one Python looks for all three
        course_python "$@" && { has psutil rich numpy ||
            { need psutil "psutil rich numpy" && need rich && need numpy; }; }
        ;;
    setup) course_python "$@" ;;
    *) any_python ;;
esac
exec "$PYTHON" -m tools "$@"
